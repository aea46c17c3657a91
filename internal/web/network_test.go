package web

import "testing"

func TestNetwork(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.7:1":               "192.0.2.7",
		"[::ffff:192.0.2.7]:1":      "192.0.2.7",
		"[2001:db8:1:2:3:4:5:6]:99": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:1":          "fe80::/64",
		"@":                         "",
		"":                          "",
	} {
		if got := Network(remote); got != want {
			t.Errorf("Network(%q) = %q, want %q", remote, got, want)
		}
	}
}
