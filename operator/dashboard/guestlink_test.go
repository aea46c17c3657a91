package dashboard_test

import (
	"html"
	"net/url"
	"strings"
	"testing"
)

// TestGuestLink shows that a link for guests can be revoked on the page that shows it, and later by
// pasting the link.
func TestGuestLink(t *testing.T) {
	p := newTokenPages(t)
	for _, pasted := range []bool{false, true} {
		made := p.mint("guest", url.Values{"allowed_addresses": {p.address}})
		token := made.find(t, shownToken)
		link := html.UnescapeString(made.find(t, `id="made-link"><span class="copy"><code>([^<]+)<`))
		form := made.find(t, `(?s)action="`+p.base+`/revoke">(.*?id="link-revoke")`)
		if !strings.Contains(form, `value="`+token+`"`) {
			t.Error("the button does not revoke the token of the link")
		}

		revoked := url.Values{"token": {token}}
		if pasted {
			revoked.Set("token", link)
		}
		p.post(p.base, p.base+"/revoke", revoked).leadsTo(t, p.base+"?done=tokenrevoked")
		if seen := p.inspect(link); !strings.Contains(seen.body, `status bad">Revoked`) {
			t.Errorf("the revoked link is shown as %s", between(seen.body, `id="found"`, "</form>"))
		}
	}
}
