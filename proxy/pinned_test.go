package proxy

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
)

// The proxy reads each pinned setting from the server once, in whatever spelling a client sends its own settings.
func TestPinnedSettingsAreAskedForAlone(t *testing.T) {
	pinnedSettings := map[string]string{"search_path": "pinned", "row_security": "pinned", "DateStyle": "pinned"}
	for _, spelling := range []func(string) string{
		strings.ToLower, strings.ToUpper, func(name string) string {
			return strings.ToUpper(name[:1]) + name[1:]
		}, func(name string) string { return name }} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan []string, 1)
		go func() {
			defer close(got)
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }()
			length := make([]byte, 4)
			if _, err := io.ReadFull(conn, length); err != nil {
				return
			}
			packet := make([]byte, binary.BigEndian.Uint32(length)-4)
			if _, err := io.ReadFull(conn, packet); err != nil {
				return
			}
			fields, requestedSettings := strings.Split(string(packet[4:]), "\x00"), []string{}
			for i := 0; i+1 < len(fields); i += 2 {
				requestedSettings = append(requestedSettings, strings.ToLower(fields[i])+"="+fields[i+1])
			}
			slices.Sort(requestedSettings)
			got <- requestedSettings
		}()
		settings := map[string]string{spelling("timezone"): "own"}
		for name := range pinnedSettings {
			settings[spelling(name)] = "own"
		}
		_, _ = Upstream{Network: "tcp", Address: listener.Addr().String(), User: "agent", Params: pinnedSettings}.dial(t.Context(), "app", settings, false)
		_ = listener.Close()
		if requestedSettings, want := fmt.Sprint(<-got),
			"[= database=app datestyle=pinned row_security=pinned search_path=pinned timezone=own user=agent]"; requestedSettings != want {
			t.Errorf("the server is asked for %s, want %s", requestedSettings, want)
		}
	}
}
