package console

import (
	"time"

	"github.com/pgconsent/pgconsent/internal/services/operations"
)

// operationsPage has the data of the page for operators. It contains no person, row or statement.
type operationsPage struct {
	operations.Overview
	Uptime  string
	Healthy bool
}

func (o *Console) showOperations(c *request) (answer, error) {
	v, err := o.Service.Operations(c, c.caller)
	if err != nil {
		return answer{}, err
	}
	p := operationsPage{Overview: v, Uptime: v.At.Sub(v.Started).Round(time.Second).String(), Healthy: v.Audit.Problem == ""}
	for _, d := range v.Databases {
		p.Healthy = p.Healthy && d.Served
	}
	return answer{template: "operations", title: "Operations", data: p}, nil
}
