package web

import (
	"net/http/httptest"
	"testing"
)

func TestNetwork(t *testing.T) {
	for remote, want := range map[string][2]string{
		"192.0.2.7:1":               {"192.0.2.7", "192.0.2.7"},
		"[::ffff:192.0.2.7]:1":      {"192.0.2.7", "192.0.2.7"},
		"[2001:db8:1:2:3:4:5:6]:99": {"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
		"[fe80::1%eth0]:1":          {"fe80::1", "fe80::/64"},
		"@":                         {"", ""},
		"":                          {"", ""},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = remote
		if got := [2]string{Address(r), Network(r)}; got != want {
			t.Errorf("the Address and Network of %q are %q, want %q", remote, got, want)
		}
	}
}
