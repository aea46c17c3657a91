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

	off := config.Config{Listen: "127.0.0.1:0", ListenTLS: config.Off}
	auto := config.Config{Listen: "127.0.0.1:0", ListenTLS: config.Auto}
	behindProxy := off
	behindProxy.FabricHost = "puc.pbx.example:443"

	tests := []struct {
		name  string
		where config.Where
		want  string
	}{
		{name: "off", where: config.Locate(off, "1", "2"), want: ""},
		{name: "off, behind a proxy", where: config.Locate(behindProxy, "1", "2"), want: "wss://puc.pbx.example:443"},
		{name: "auto", where: config.Locate(auto, "1", "2"), want: "wss://puc.localhost:2"},
		{
			name:  "a command, with a server without HTTPS",
			where: config.LocateRunning(running("")),
			want:  "",
		},
		{
			name:  "a command, with a server",
			where: config.LocateRunning(running("https://127.0.0.1:3")),
			want:  "wss://puc.localhost:3",
		},
	}

	for _, tt := range tests {
		a := &App{Config: config.Config{Services: config.Services(config.AllServices)}, Where: tt.where}
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
