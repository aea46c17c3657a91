package server

import (
	"testing"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
)

// TestRelayURL shows that the relay is listed only if HTTPS is served, because browser SDKs connect
// to it only over HTTPS.
func TestRelayURL(t *testing.T) {
	running := func(https string) config.Config {
		dir := t.TempDir()
		if err := (datadir.Running{PublicURL: "http://localhost:1", HTTPS: https}).Write(dir); err != nil {
			t.Fatal(err)
		}
		return config.Config{Listen: "127.0.0.1:0", ListenTLS: config.Auto, Data: dir}
	}

	tests := []struct {
		name string
		w    config.Where
		want string
	}{
		{"off", config.Locate(config.Config{Listen: "127.0.0.1:0", ListenTLS: config.Off}, "1", "2"), ""},
		{"off, behind a proxy", config.Locate(
			config.Config{Listen: "127.0.0.1:0", ListenTLS: config.Off, FabricHost: "puc.pbx.example:443"},
			"1", "2"), "wss://puc.pbx.example:443"},
		{"auto", config.Locate(config.Config{Listen: "127.0.0.1:0", ListenTLS: config.Auto}, "1", "2"),
			"wss://puc.localhost:2"},
		{"a command, with a server without HTTPS", config.LocateRunning(running("")), ""},
		{"a command, with a server", config.LocateRunning(running("https://127.0.0.1:3")), "wss://puc.localhost:3"},
	}

	for _, tt := range tests {
		a := &App{Config: config.Config{Services: config.Services(config.AllServices)}, Where: tt.w}
		got := ""
		for _, l := range a.links() {
			if l.Title == "Relay" {
				got = l.URL
			}
		}
		if got != tt.want {
			t.Errorf("%s: the relay is at %q, want %q", tt.name, got, tt.want)
		}
	}
}
