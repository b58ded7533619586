//! A policy with a long list of allowed programs.

use super::allow;
use mcpz_policy::{Policy, Rule};

/// More than a developer would allow.
pub const ALLOWED: &str = "git,cargo,npm,npx,node,python3,pip,make,ls,cat,head,tail,grep,rg,find,sed,awk,jq,echo,\
    printf,cd,pwd,mkdir,touch,cp,mv,wc,sort,uniq,diff,tr,cut,tee,xargs,env,timeout,time,curl,test,[,true,\
    false,tar,export,read,wait,set,command,split,unset,let,declare,trap,eval,mapfile,exec,bash,sh,flock,\
    prlimit,script,sqlite3,ssh,builtin,source,.,:,gcc,local,return";

pub fn developer() -> Policy {
    Policy { deny: Rule::list("rm,sudo,git push").unwrap(), ..allow(ALLOWED) }
}
