package main

type auditCmd struct {
	Verify auditVerifyCmd `cmd:"" help:"Is every record there, unchanged? Of agents' statements, and of consents."`
}
