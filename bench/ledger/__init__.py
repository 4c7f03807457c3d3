"""The records that producers sent and those that the log holds, one by one."""
