package config

import "testing"

func TestTLSAddress(t *testing.T) {
	for _, tt := range []struct {
		listen, listenTLS HostPort
		cert              fileName
		hosts             hostNames
		want              HostPort
	}{
		{"127.0.0.1:8080", Auto, "", nil, "127.0.0.1:8443"},
		{":8080", Auto, "", nil, Off},
		{":8080", ":443", "", nil, ":443"},
		{":8080", Auto, "cert.pem", nil, ":8443"},
		{":80", Auto, "cert.pem", nil, ":443"},
		{"[::1]:80", Auto, "", hostNames{"a.test"}, "[::1]:443"},
		{"192.0.2.1:8080", Auto, "", hostNames{"a.test"}, "192.0.2.1:8443"},
		{":80", Off, "cert.pem", nil, Off},
	} {
		c := Config{Listen: tt.listen, ListenTLS: tt.listenTLS}
		c.TLS.Cert, c.TLS.ACME.Hosts = tt.cert, tt.hosts
		if got := c.TLSAddress(); got != tt.want {
			t.Errorf("tlsAddress(%s, %s, %q, %q) = %s, want %s", tt.listen, tt.listenTLS, tt.cert, tt.hosts,
				got, tt.want)
		}
	}
}
