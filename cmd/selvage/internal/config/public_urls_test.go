package config

import (
	"slices"
	"testing"
)

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

// TestLocate shows that derived URLs omit the port that their scheme implies, as browsers do.
func TestLocate(t *testing.T) {
	tests := []struct {
		listen     HostPort
		public     BaseURL
		port       string
		want, also string // the public URL, and an origin of the server
	}{
		{
			listen: "127.0.0.1:8080",
			port:   "8080",
			want:   "http://localhost:8080",
			also:   "http://127.0.0.1:8080",
		},
		{
			listen: ":80",
			port:   "80",
			want:   "http://localhost",
			also:   "http://[::1]",
		},
		{
			listen: "192.0.2.1:80",
			port:   "80",
			want:   "http://192.0.2.1",
			also:   "http://192.0.2.1",
		},
		{
			listen: "127.0.0.1:8080",
			public: "https://localhost",
			port:   "8080",
			want:   "https://localhost",
			also:   "https://127.0.0.1",
		},
	}

	for _, tt := range tests {
		w := Locate(Config{Listen: tt.listen, PublicURL: tt.public}, tt.port, "8443")
		if w.Public != tt.want {
			t.Errorf("the public URL with listen %s and public_url %q = %s, want %s",
				tt.listen, tt.public, w.Public, tt.want)
		}
		if got := w.Origins(); !slices.Contains(got, tt.also) {
			t.Errorf("Origins with listen %s and public_url %q = %q, want %s in it",
				tt.listen, tt.public, got, tt.also)
		}
		if got, want := w.LocateMTLS("443").MTLS, origin("https", nameOf(tt.listen), ""); got != want {
			t.Errorf("LocateMTLS with listen %s and port 443 = %s, want %s", tt.listen, got, want)
		}
	}
}
