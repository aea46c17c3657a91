package config

import (
	"net/netip"
	"slices"
	"testing"
)

// TestMediaAddresses shows that browsers on the server's machine get loopback and the machine's
// other addresses. If the server listens only on loopback, they get only loopback. If addresses are
// configured, they get only these.
func TestMediaAddresses(t *testing.T) {
	loopback, named := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("192.0.2.7")
	tests := []struct {
		name   string
		config Config
		want   []netip.Addr
	}{
		{"every interface", Config{ListenMedia: ":8444"}, append(globalAddresses(), loopback)},
		{"loopback", Config{ListenMedia: "127.0.0.1:8444"}, []netip.Addr{loopback}},
		{"configured", Config{ListenMedia: ":8444", MediaAddress: mediaAddresses{named}}, []netip.Addr{named}},
	}
	for _, tt := range tests {
		got, elsewhere, err := tt.config.MediaAddresses(t.Context(), "http://localhost:8080")
		got = slices.DeleteFunc(got, func(a netip.Addr) bool { return a == netip.IPv6Loopback() })
		slices.SortFunc(got, netip.Addr.Compare)
		slices.SortFunc(tt.want, netip.Addr.Compare)
		if !slices.Equal(got, tt.want) || len(elsewhere) > 0 || err != nil {
			t.Errorf("%s: MediaAddresses = %v, %v, %v, want %v", tt.name, got, elsewhere, err, tt.want)
		}
	}
}
