package dashboard_test

import (
	"html"
	"maps"
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
	created := b.post(base+"/new", base, url.Values{
		"type":         {"web"},
		"profile":      {"default"},
		"id_token_alg": {"ES256"},
		"name":         {"Shop"},
		"redirect_uri": {"https://shop.example/cb\r\n https://shop.example/other"},
	})
	secret = created.find(t, shownSecret)

	found, err := w.idp.Clients.List(t.Context(), w.one.ID, firstPage)
	must(t, err)
	return base + "/" + found.Items[0].ID, found.Items[0], secret
}

// TestClientFaults shows that the form shows errors next to their fields and keeps what was typed.
func TestClientFaults(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID + "/clients"

	for _, tt := range []struct {
		name  string
		typ   string
		wrong url.Values // replaces fields of a valid form
		field string     // the field with the error
	}{
		{"without a redirect URI", "spa", url.Values{"redirect_uri": nil}, "redirect_uri"},
		{"with a script as redirect URI", "spa", url.Values{"redirect_uri": {"javascript:alert(1)"}}, "redirect_uri"},
		{"with a fragment", "web", url.Values{"redirect_uri": {"https://a.example/#x"}}, "redirect_uri"},
		{"with an http post-logout URI", "web", url.Values{"post_logout_redirect_uri": {"http://b.example/"}},
			"post_logout_redirect_uri"},
		{"of an unknown profile", "spa", url.Values{"profile": {"lax"}}, "profile"},
		{"that omits PKCE", "spa", url.Values{"pkce": {"optional"}}, "pkce"},
		{"without a signed ID token", "spa", url.Values{"id_token_alg": {"none"}}, "id_token_alg"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			form := url.Values{
				"type":         {tt.typ},
				"name":         {"Kept & shown"},
				"profile":      {"default"},
				"id_token_alg": {"RS256"},
				"redirect_uri": {"https://a.example/"},
			}
			maps.Copy(form, tt.wrong)
			a := b.post(base+"/new", base, form)
			a.wantRefused(t, `id="f-`+tt.field+`-fault"`, `value="Kept &amp; shown"`)
			a.wantNoText(t, `href="javascript`)
		})
	}
}

// TestClientURIFaults shows that errors about redirect URIs are in the language of the page,
// contain the URI, and do not refer to an RFC.
func TestClientURIFaults(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID + "/clients"
	for _, tt := range []struct{ uri, english, german string }{
		{"", "Begin with https://, or", "Beginnen Sie mit https:// oder"},
		{"http://shop.example/cb", "is not encrypted. Begin with https://", "ist nicht verschlüsselt."},
		{"shop.example/cb", "is not a complete address.", "ist keine vollständige Adresse."},
		{"https://shop.example/{name}", "that an address must escape", "die eine Adresse maskieren muss"},
		{"myapp:/callback", "is not an address of a website.", "ist keine Adresse einer Website."},
	} {
		for language, want := range map[string]string{"en": tt.english, "de": tt.german} {
			r := b.request("POST", base, url.Values{
				"form":         {b.token(base + "/new")},
				"type":         {"spa"},
				"profile":      {"default"},
				"id_token_alg": {"RS256"},
				"redirect_uri": {tt.uri},
			})
			r.Header.Set("Accept-Language", language)
			a := b.send(r)
			a.wantRefused(t)

			text := html.UnescapeString(between(a.body, `id="f-redirect_uri-fault"`, "</p>"))
			for _, part := range []string{want, tt.uri} {
				if !strings.Contains(text, part) {
					t.Errorf("the error about %q in %s is %q, want it to contain %q", tt.uri, language, text, part)
				}
			}
			if strings.Contains(text, "RFC") {
				t.Errorf("the error about %q in %s is %q, want no mention of an RFC", tt.uri, language, text)
			}
		}
	}
}

// TestClients shows that a valid form registers a client and shows its secret only once.
func TestClients(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one, c, secret := w.shop(t, b)
	if n := len(c.RedirectURIs); n != 2 {
		t.Errorf("the client has %d redirect URIs, want 2", n)
	}
	if c.IDTokenAlg != "ES256" {
		t.Errorf("the client signs ID tokens with %q, want ES256", c.IDTokenAlg)
	}
	if c.AuthMethod != idp.AuthBasic {
		t.Errorf("the client authenticates with %q, want %q", c.AuthMethod, idp.AuthBasic)
	}
	if !c.HasSecret(secret, time.Now()) {
		t.Error("the client does not have the shown secret")
	}
	if len(c.Scopes) == 0 {
		t.Error("the client has no scopes, want some")
	}
	if n := len(c.Grants); n != 2 {
		t.Errorf("the client has %d grants, want 2", n)
	}

	page := b.get(one)
	page.wantText(t, "/login/oauth/authorize?client_id="+c.ID) // the link to try
	page.wantNoText(t, secret)
	samples := between(page.body, `class="snippets"`, "</div>")
	for _, want := range []string{"openid-client", "client.ClientSecretBasic(SECRET)",
		"&#34;" + c.ID + "&#34;", "https://shop.example/cb"} {
		if !strings.Contains(samples, want) {
			t.Errorf("the code samples have no %s: %s", want, samples)
		}
	}

	// Earlier versions accepted redirect URIs that contain "</script>". Such a URI must not end the
	// script of the code samples.
	evil := c
	evil.ID, evil.Type = uuid.NewString(), idp.SPA
	evil.RedirectURIs = []string{"https://shop.example/?</script><svg/onload=evil()>"}
	must(t, w.rows.CreateClient(t.Context(), evil))

	page = b.get(strings.Replace(one, c.ID, evil.ID, 1))
	samples = html.UnescapeString(between(page.body, `class="snippets"`, "</div>"))
	if want := `"https://shop.example/?\u003c/script>`; !strings.Contains(samples, want) {
		t.Errorf("the code samples lack the escaped redirect URI %s: %s", want, samples)
	}
	for _, bad := range []string{"?</script>", "<svg"} {
		if strings.Contains(samples, bad) {
			t.Errorf("the code samples contain %s: %s", bad, samples)
		}
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
	form := url.Values{
		"name":         {"Signer"},
		"type":         {"service"},
		"profile":      {"default"},
		"id_token_alg": {"RS256"},
		"auth_method":  {"private_key_jwt"},
	}
	private := strings.Replace(public, `"x":`, `"d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","x":`, 1)
	for _, bad := range []string{"{", `"x"`, `{"keys":[]}`, private} {
		form.Set("jwks", bad)
		b.post(base+"/new", base, form).wantRefused(t, "f-jwks-fault")
	}

	form.Set("jwks", " "+public+"\r\n")
	b.post(base+"/new", base, form).wantStatus(t, http.StatusOK)
}

// TestClientSecret shows that the old secret stays valid alongside a new one until the overlap ends
// or the old secret is revoked.
func TestClientSecret(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	one, c, secret := w.shop(t, b)
	tooLong := b.post(one, one+"/rotate", url.Values{"overlap": {"for ever"}})
	if tooLong.StatusCode < 400 || tooLong.StatusCode > 499 {
		t.Errorf("%s with an unknown overlap, want a client error", tooLong)
	}

	// During the overlap, both secrets are valid.
	shown := b.post(one, one+"/rotate", url.Values{"overlap": {"day"}})
	rotated := shown.find(t, shownSecret)
	shown.wantText(t, `id="rotate"`)
	if rotated == secret {
		t.Errorf("the rotation returned the secret %q again, want another one", secret)
	}
	type validity struct{ old, rotated bool }
	validAt := func(at time.Time) validity {
		t.Helper()
		c, err := w.idp.Clients.Find(t.Context(), c.ID)
		must(t, err)
		return validity{old: c.HasSecret(secret, at), rotated: c.HasSecret(rotated, at)}
	}
	if got, want := validAt(w.now()), (validity{old: true, rotated: true}); got != want {
		t.Errorf("after the rotation, these secrets are valid: %+v, want %+v", got, want)
	}
	if got := validAt(w.now().Add(25 * time.Hour)); got.old {
		t.Error("the old secret is valid after the overlap of a day")
	}
	b.get(one).wantText(t, "Valid until", "not used since the rotation")

	// The page shows the new secret after the end of the old one, unless the secret was rotated again.
	kept := url.Values{"secret": {rotated}}
	if got := b.post(one, one+"/old-secret", kept).find(t, shownSecret); got != rotated {
		t.Errorf("after the end of the old secret, the page shows %q, want %q", got, rotated)
	}
	again := b.post(one, one+"/rotate", url.Values{"overlap": {"day"}}).find(t, shownSecret)
	notShown := url.Values{"secret": {rotated}}
	b.post(one, one+"/old-secret", notShown).leadsTo(t, one+"?done=clientended")
	b.post(one, one+"/old-secret", nil).wantRefused(t) // the old secret has ended

	rotated = again
	if got, want := validAt(w.now()), (validity{rotated: true}); got != want {
		t.Errorf("after the end of the old secret, these secrets are valid: %+v, want %+v", got, want)
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
	must(t, err)
	if after.Profile != idp.MobileLegacy {
		t.Errorf("after the change, the profile is %q, want %q", after.Profile, idp.MobileLegacy)
	}
	if !after.PKCEOptional {
		t.Error("after the change, PKCE is required, want it optional")
	}
	if after.RequireACR != "2" {
		t.Errorf("after the change, the required acr is %q, want 2", after.RequireACR)
	}
	if n := len(after.Scopes); n != 2 {
		t.Errorf("after the change, the client has %d scopes, want 2", n)
	}
	if n := len(after.Grants); n != 1 {
		t.Errorf("after the change, the client has %d grants, want 1", n)
	}
	if after.AuthMethod != idp.AuthPost {
		t.Errorf("after the change, the client authenticates with %q, want %q", after.AuthMethod, idp.AuthPost)
	}

	// The form does not change these.
	if after.Type != idp.Web {
		t.Errorf("after the change, the type is %q, want %q", after.Type, idp.Web)
	}
	if after.AccessToken != c.AccessToken {
		t.Errorf("after the change, access tokens are %q, want %q as before", after.AccessToken, c.AccessToken)
	}
	if !after.HasSecret(secret, time.Now()) {
		t.Error("after the change, the client's secret is not valid")
	}

	edit.Set("redirect_uri", "")
	b.post(one+"/edit", one+"/edit", edit).wantRefused(t, "f-redirect_uri-fault")
}
