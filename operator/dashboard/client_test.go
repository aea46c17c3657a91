package dashboard_test

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/idp"
)

const shownSecret = `id="secret"><span class="copy"><code>([^<]+)<`

// shop registers a client through the form. It returns the client's page, its row and its secret.
func (w *world) shop(t *testing.T, b browser) (page string, c idp.Client, secret string) {
	t.Helper()
	base := "/dashboard/projects/" + w.one.ID + "/clients"
	created := b.post(base+"/new", base, url.Values{"type": {"web"}, "profile": {"default"},
		"id_token_alg": {"ES256"}, "name": {"Shop"},
		"redirect_uri": {"https://shop.example/cb\r\n https://shop.example/other"}})
	secret = created.find(t, shownSecret)

	all, err := w.idp.Clients.List(t.Context(), w.one.ID, firstPage)
	must(t, err)
	return base + "/" + all.Items[0].ID, all.Items[0], secret
}

// TestClientFaults shows that the form shows errors next to their fields and keeps what was typed.
func TestClientFaults(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID + "/clients"

	for name, wrong := range map[string]struct {
		form url.Values
		at   string
	}{
		"without a redirect URI": {url.Values{"type": {"spa"}, "profile": {"default"},
			"id_token_alg": {"RS256"}}, "f-redirect_uri-fault"},
		"with a script as redirect URI": {url.Values{"type": {"spa"}, "profile": {"default"},
			"id_token_alg": {"RS256"}, "redirect_uri": {"javascript:alert(1)"}}, "f-redirect_uri-fault"},
		"with a fragment in it": {url.Values{"type": {"web"}, "profile": {"default"},
			"id_token_alg": {"RS256"}, "redirect_uri": {"https://a.example/#x"}}, "f-redirect_uri-fault"},
		"with an http address to return to": {url.Values{"type": {"web"}, "profile": {"default"},
			"id_token_alg": {"RS256"}, "redirect_uri": {"https://a.example/"},
			"post_logout_redirect_uri": {"http://b.example/"}},
			"f-post_logout_redirect_uri-fault"},
		"of an unknown profile": {url.Values{"type": {"spa"}, "profile": {"lax"}, "id_token_alg": {"RS256"},
			"redirect_uri": {"https://a.example/"}}, "f-profile-fault"},
		"that omits PKCE": {url.Values{"type": {"spa"}, "profile": {"default"},
			"id_token_alg": {"RS256"}, "redirect_uri": {"https://a.example/"}, "pkce": {"optional"}}, "f-pkce-fault"},
		"without a signed ID token": {url.Values{"type": {"spa"}, "profile": {"default"},
			"id_token_alg": {"none"}, "redirect_uri": {"https://a.example/"}}, "f-id_token_alg-fault"},
	} {
		wrong.form.Set("name", "Kept & shown")
		a := b.post(base+"/new", base, wrong.form)
		if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, `id="`+wrong.at+`"`) ||
			!strings.Contains(a.body, `value="Kept &amp; shown"`) || strings.Contains(a.body, `href="javascript`) {
			t.Errorf("a client %s: %s %s, want 422 with an error at the field",
				name, a.Status, between(a.body, `id="faults"`, "</div>"))
		}
	}
}

// TestClientURIFaults shows that errors about redirect URIs say what to write, in the language of the
// page.
func TestClientURIFaults(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID + "/clients"
	for uri, want := range map[string][2]string{
		"":                            {"Begin with https://, or", "Beginnen Sie mit https:// oder"},
		"http://shop.example/cb":      {"is not encrypted. Begin with https://", "ist nicht verschlüsselt."},
		"shop.example/cb":             {"is not a complete address.", "ist keine vollständige Adresse."},
		"https://shop.example/{name}": {"that an address must escape", "die eine Adresse maskieren muss"},
		"myapp:/callback":             {"is not an address of a website.", "ist keine Adresse einer Website."},
	} {
		for i, language := range []string{"en", "de"} {
			r := b.request("POST", base, url.Values{"form": {b.token(base + "/new")}, "type": {"spa"},
				"profile": {"default"}, "id_token_alg": {"RS256"}, "redirect_uri": {uri}})
			r.Header.Set("Accept-Language", language)
			a := b.send(r)
			text := html.UnescapeString(between(a.body, `id="f-redirect_uri-fault"`, "</p>"))
			if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, want[i]) ||
				!strings.Contains(text, uri) || strings.Contains(text, "RFC") {
				t.Errorf("the error about %q in %s is %s %q", uri, language, a.Status, text)
			}
		}
	}
}

// TestClients shows that a valid form registers a client and shows its secret once.
func TestClients(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one, c, secret := w.shop(t, b)
	if len(c.RedirectURIs) != 2 || c.IDTokenAlg != "ES256" || c.AuthMethod != idp.AuthBasic ||
		!c.HasSecret(secret, time.Now()) || len(c.Scopes) == 0 || len(c.Grants) != 2 {
		t.Errorf("the client is %+v", c)
	}

	page := b.get(one)
	if strings.Contains(page.body, secret) || !strings.Contains(page.body, "/login/oauth/authorize?client_id="+c.ID) {
		t.Errorf("the client's page returned %s, and shows the secret or lacks the link to try", page.Status)
	}

	for _, want := range []string{"openid-client", "client.ClientSecretBasic(SECRET)",
		"&#34;" + c.ID + "&#34;", "https://shop.example/cb"} {
		if code := between(page.body, `class="snippets"`, "</div>"); !strings.Contains(code, want) {
			t.Errorf("the code samples have no %s: %s", want, code)
		}
	}

	// Earlier versions accepted redirect URIs that contain "</script>". Such a URI must not end the
	// script of the code samples.
	evil := c
	evil.ID, evil.Type = uuid.NewString(), idp.SPA
	evil.RedirectURIs = []string{"https://shop.example/?</script><svg/onload=evil()>"}
	must(t, w.rows.CreateClient(t.Context(), evil))

	page = b.get(strings.Replace(one, c.ID, evil.ID, 1))
	code := html.UnescapeString(between(page.body, `class="snippets"`, "</div>"))
	if !strings.Contains(code, `"https://shop.example/?\u003c/script>`) ||
		strings.Contains(code, "?</script>") || strings.Contains(code, "<svg") {
		t.Errorf("the code samples with a redirect URI that ends a script are %s", code)
	}
}

// TestClientKeys shows that a client's public keys can be pasted into the form. Private and invalid
// keys are refused.
func TestClientKeys(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID + "/clients"

	const public = `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k1",` +
		`"x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`
	signs := url.Values{"name": {"Signer"}, "type": {"service"}, "profile": {"default"},
		"id_token_alg": {"RS256"}, "auth_method": {"private_key_jwt"}}
	for _, bad := range []string{"{", `"x"`, `{"keys":[]}`,
		strings.Replace(public, `"x":`, `"d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","x":`, 1)} {
		signs.Set("jwks", bad)
		if a := b.post(base+"/new", base, signs); a.StatusCode != http.StatusUnprocessableEntity ||
			!strings.Contains(a.body, "f-jwks-fault") {
			t.Errorf("the keys %s: %s %s, want 422 with an error at the keys",
				bad, a.Status, between(a.body, `id="faults"`, "</div>"))
		}
	}

	signs.Set("jwks", " "+public+"\r\n")
	if a := b.post(base+"/new", base, signs); a.StatusCode != http.StatusOK {
		t.Errorf("keys by value: %s %s, want 200",
			a.Status, between(a.body, `id="faults"`, "</div>"))
	}
}

// TestClientSecret shows that the old secret stays valid alongside a new one until the overlap ends
// or the old secret is revoked.
func TestClientSecret(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one, c, secret := w.shop(t, b)
	if a := b.post(one, one+"/rotate", url.Values{"overlap": {"for ever"}}); a.StatusCode < 400 ||
		a.StatusCode > 499 {
		t.Errorf("an excessive overlap: %s, want a client error", a.Status)
	}

	shown := b.post(one, one+"/rotate", url.Values{"overlap": {"day"}})
	rotated := shown.find(t, shownSecret)
	if !strings.Contains(shown.body, `id="rotate"`) {
		t.Error("the page that shows a secret does not offer to rotate it")
	}
	c, err := w.idp.Clients.Find(t.Context(), c.ID)
	must(t, err)
	if rotated == secret || !c.HasSecret(secret, w.now()) || !c.HasSecret(rotated, w.now()) ||
		c.HasSecret(secret, w.now().Add(25*time.Hour)) {
		t.Errorf("after a rotation the client is %+v", c)
	}

	if page := b.get(one).body; !strings.Contains(page, "Valid until") ||
		!strings.Contains(page, "not used since the rotation") {
		t.Error("the old secret is not listed")
	}

	kept := url.Values{"secret": {rotated}}
	if a := b.post(one, one+"/old-secret", kept); a.find(t, shownSecret) != rotated {
		t.Error("after the old secret is revoked the page no longer shows the new one")
	}
	again := b.post(one, one+"/rotate", url.Values{"overlap": {"day"}}).find(t, shownSecret)
	old := url.Values{"secret": {rotated}} // not shown again
	b.post(one, one+"/old-secret", old).leadsTo(t, one+"?done=clientended")
	rotated = again
	if a := b.post(one, one+"/old-secret", nil); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("ending the old secret again: %s, want 422", a.Status)
	}

	c, err = w.idp.Clients.Find(t.Context(), c.ID)
	if err != nil || c.HasSecret(secret, w.now()) || !c.HasSecret(rotated, w.now()) {
		t.Errorf("after the old secret ended the client is %+v, %v", c, err)
	}
}

// TestEditClient shows that the form changes settings but keeps the type and the secret.
func TestEditClient(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one, c, secret := w.shop(t, b)
	edit := url.Values{
		"name": {"Shop"}, "redirect_uri": {"https://shop.example/cb"}, "profile": {"mobile-legacy"},
		"id_token_alg": {"ES256"}, "scope": {"openid", "Voice"}, "grant": {idp.GrantCode},
		"auth_method": {"client_secret_post"}, "pkce": {"optional"}, "acr": {"2"},
	}

	b.post(one+"/edit", one+"/edit", edit).leadsTo(t, one+"?done=changed")
	after, err := w.idp.Clients.Find(t.Context(), c.ID)
	if err != nil || after.Profile != idp.MobileLegacy || !after.PKCEOptional || after.RequireACR != "2" ||
		len(after.Scopes) != 2 || len(after.Grants) != 1 || after.AuthMethod != idp.AuthPost ||
		after.Type != idp.Web || !after.HasSecret(secret, time.Now()) || after.AccessToken != c.AccessToken {
		t.Errorf("after the change the client is %+v, %v", after, err)
	}

	edit.Set("redirect_uri", "")
	if a := b.post(one+"/edit", one+"/edit", edit); a.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(a.body, "f-redirect_uri-fault") {
		t.Errorf("removing all redirect URIs: %s, want 422 with an error at the field", a.Status)
	}
}
