"""How each host is told about the server and the model: a function that writes what it needs into
its home, and answers with a command line and an environment.
"""

import json
import os

server = {"command": os.environ["MCPZ"], "args": ["server", "shell", "--tools", "all", "--deny", "sudo"]}


def claude(home, url):
    write(home / "mcp.json", {"mcpServers": {"shell": server}})
    environment = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        # The tools are offered as they are; the model need not search for them.
        "ENABLE_TOOL_SEARCH": "false",
    }
    # Not --dangerously-skip-permissions: root may not use it.
    flags = ["--mcp-config", str(home / "mcp.json"), "--strict-mcp-config", "--allowedTools", "mcp__shell__*"]
    return ["claude", "-p", "go", *flags], environment


def codex(home, url):
    # To a model it does not know, Codex shows less of an answer (10,000 bytes) than to its own
    # (10,000 tokens), and offers all tools at once. TOML and JSON spell strings alike.
    lines = [
        'model = "stand-in"',
        'model_provider = "stand-in"',
        'approval_policy = "never"',
        "check_for_update_on_startup = false",
        "[analytics]",
        "enabled = false",
        "[model_providers.stand-in]",
        'name = "stand-in"',
        f'base_url = "{url}/v1"',
        'wire_api = "responses"',
        "[mcp_servers.shell]",
        f"command = {json.dumps(server['command'])}",
        f"args = {json.dumps(server['args'])}",
        'default_tools_approval_mode = "approve"',
        # It asks its model without the tools of a server that starts slowly, unless that is required.
        "required = true",
        "startup_timeout_sec = 60",
    ]
    write(home / ".codex/config.toml", "\n".join(lines))
    return ["codex", "exec", "--skip-git-repo-check", "go"], {"CODEX_HOME": str(home / ".codex")}


def gemini(home, url):
    settings = {
        "mcpServers": {"shell": {**server, "trust": True}},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "privacy": {"usageStatisticsEnabled": False},
    }
    write(home / ".gemini/settings.json", settings)
    environment = {
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_API_KEY": "none",
        # It starts no server in a folder that is not trusted.
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }
    return ["gemini", "-p", "go", "-m", "gemini-2.5-pro"], environment


def qwen(home, url):
    settings = {
        "mcpServers": {"shell": {**server, "trust": True}},
        "tools": {"toolSearch": {"enabled": False}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
    }
    write(home / ".qwen/settings.json", settings)
    environment = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": "stand-in"}
    return ["qwen", "-p", "go"], environment


HOSTS = {"claude": claude, "codex": codex, "gemini": gemini, "qwen": qwen}


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
