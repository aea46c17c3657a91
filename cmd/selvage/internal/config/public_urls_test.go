package config

import "testing"

// TestTLSAddress shows how the address for HTTPS depends on the address for HTTP, and on whether a
// certificate is configured.
func TestTLSAddress(t *testing.T) {
	hosts := hostNames{"a.test"}
	tests := []struct {
		listen, listenTLS HostPort
		cert              fileName
		hosts             hostNames
		want              HostPort
	}{
		{listen: "127.0.0.1:8080", listenTLS: Auto, want: "127.0.0.1:8443"},
		{listen: ":8080", listenTLS: Auto, want: Off},
		{listen: ":8080", listenTLS: ":443", want: ":443"},
		{listen: ":8080", listenTLS: Auto, cert: "cert.pem", want: ":8443"},
		{listen: ":80", listenTLS: Auto, cert: "cert.pem", want: ":443"},
		{listen: "[::1]:80", listenTLS: Auto, hosts: hosts, want: "[::1]:443"},
		{listen: "192.0.2.1:8080", listenTLS: Auto, hosts: hosts, want: "192.0.2.1:8443"},
		{listen: ":80", listenTLS: Off, cert: "cert.pem", want: Off},
	}

	for _, tt := range tests {
		c := Config{Listen: tt.listen, ListenTLS: tt.listenTLS}
		c.TLS.Cert = tt.cert
		c.TLS.ACME.Hosts = tt.hosts
		if got := c.TLSAddress(); got != tt.want {
			t.Errorf("TLSAddress with listen %s, listen_tls %s, the file %q and the hosts %q = %s, want %s",
				tt.listen, tt.listenTLS, tt.cert, tt.hosts, got, tt.want)
		}
	}
}
