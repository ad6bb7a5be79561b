"""Setting an installation up, and examining one."""
