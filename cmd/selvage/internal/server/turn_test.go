package server

import (
	"net"
	"testing"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

// TestTURNURL shows that clients use TLS for TURN if the server has a certificate.
func TestTURNURL(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := portIn(l)

	tests := []struct {
		name  string
		ports ports
		want  string
	}{
		{name: "HTTP only", ports: ports{turn: l}, want: "turn:pbx.example.org:" + port + "?transport=tcp"},
		{name: "HTTPS", ports: ports{turn: l, tls: l}, want: "turns:pbx.example.org:" + port + "?transport=tcp"},
		{name: "mTLS only", ports: ports{turn: l, mtls: l}, want: "turns:pbx.example.org:" + port + "?transport=tcp"},
	}
	for _, tt := range tests {
		if got := turnURL(config.Config{}, "http://pbx.example.org", tt.ports); got != tt.want {
			t.Errorf("%s: the URL is %s, want %s", tt.name, got, tt.want)
		}
	}
}
