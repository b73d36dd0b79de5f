package main

import (
	"github.com/pgconsent/pgconsent/internal/services/mcp"
)

type mcpCmd struct{ serverFlags }

func (mcpCmd) Help() string {
	return `For clients that start their servers themselves: reads messages of the Model Context Protocol on stdin, passes each to a running
pgconsent serve, and writes the answers on stdout. The token decides which tools are offered. Clients that speak HTTP connect
to URL/mcp themselves, with "Authorization: Bearer TOKEN".

  PGCONSENT_TOKEN=… pgconsent mcp --url http://127.0.0.1:7433
  pgconsent mcp --token-file assistant.token`
}

func (m mcpCmd) Run(s *session) error {
	server, err := m.resolve(s)
	if err != nil {
		return err
	}
	return mcp.Bridge{URL: server.baseURL + "/mcp", Token: server.token, HTTP: server.http, Log: s.log}.Run(s.ctx, s.in,
		s.out)
}
