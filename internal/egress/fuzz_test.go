package egress

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/fuzzcost"
)

// FuzzURL shows that no accepted URL of a webhook or document names a loopback, private or
// unspecified address.
func FuzzURL(f *testing.F) {
	for _, text := range []string{
		"https://example.com/a?b",
		"http://127.0.0.1/",
		"http://[::ffff:10.0.0.1]/",
		"http://0x7f.1/",
		"http://2130706433/",
		"http://[fe80::1%25eth0]/",
		"http://localhost./",
		"http://a@b/",
		"http://example.com:0/",
		"gopher://a/",
		"http://" + strings.Repeat("1.", 1<<13),
		"http://[" + strings.Repeat(":", 1<<14) + "]/",
		"http://a/" + strings.Repeat("%41", 1<<13),
		strings.Repeat("http://", 1<<12),
	} {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) {
		fuzzcost.Parser.Check(t, len(text), func() {
			if (Policy{}).Check("url", text) != nil {
				return
			}
			u, err := url.Parse(text)
			if err != nil {
				t.Fatalf("%q was accepted but cannot be parsed: %v", text, err)
			}
			ip, err := netip.ParseAddr(u.Hostname())
			if err == nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsUnspecified()) {
				t.Errorf("%q was accepted but leads to %v", text, ip)
			}
		})
	})
}
