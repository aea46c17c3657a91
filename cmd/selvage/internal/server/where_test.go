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
			name:  "a command, while a server runs without HTTPS",
			where: config.LocateRunning(running("")),
			want:  "",
		},
		{
			name:  "a command, while a server runs",
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

// TestLocal shows that a server is not local if any of its listeners or URLs is not.
func TestLocal(t *testing.T) {
	local := config.Config{Listen: "127.0.0.1:80", ListenTLS: config.Auto, ListenMTLS: config.Off}
	tests := []struct {
		name   string
		change func(c *config.Config)
		want   bool
	}{
		{name: "defaults", change: func(*config.Config) {}, want: true},
		{name: "HTTP", change: func(c *config.Config) { c.Listen = ":80" }},
		{name: "HTTPS", change: func(c *config.Config) { c.ListenTLS = ":443" }},
		{name: "mTLS", change: func(c *config.Config) { c.ListenMTLS = ":8446" }},
		{name: "mTLS on loopback", change: func(c *config.Config) { c.ListenMTLS = "127.0.0.1:8446" }, want: true},
		{name: "public URL", change: func(c *config.Config) { c.PublicURL = "https://pbx.example.org" }},
		{name: "auth URL", change: func(c *config.Config) { c.AuthURL = "https://id.example.org" }},
	}
	for _, tt := range tests {
		c := local
		tt.change(&c)
		a := &App{Config: c, Where: config.Locate(c, "80", "443")}
		if got := a.Local(); got != tt.want {
			t.Errorf("%s: Local() = %t, want %t", tt.name, got, tt.want)
		}
	}
}
