package dashboard_test

import (
	"bytes"
	"html"
	"image"
	"image/color"
	"image/png"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/words"
)

// picture returns a PNG of one color.
func picture(t *testing.T, c color.Color) string {
	t.Helper()
	p := image.NewNRGBA(image.Rect(0, 0, 60, 20))
	for i := range 60 * 20 {
		p.Set(i%60, i/60, c)
	}
	var out bytes.Buffer
	must(t, png.Encode(&out, p))
	return out.String()
}

// brandingPages creates a client, and returns the branding forms of the project and the client.
func (w *world) brandingPages(t *testing.T) map[string]string {
	t.Helper()
	c, _, err := w.idp.Clients.Create(t.Context(), idp.Client{ProjectID: w.one.ID, Type: idp.Web, Name: "Shop",
		RedirectURIs: []string{"https://shop.example/cb"}})
	must(t, err)
	return map[string]string{"project": "/dashboard/projects/" + w.one.ID + "/branding",
		"client": "/dashboard/projects/" + w.one.ID + "/clients/" + c.ID + "/branding"}
}

// TestBrandingPreview shows that a preview contains the typed values, escaped, and rates the
// contrast of the color. The login page in the preview cannot be used to sign in.
func TestBrandingPreview(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	for name, at := range w.brandingPages(t) {
		seen := b.post(at, at+"/preview",
			url.Values{"name": {`"><img onerror=x>`}, "color": {"#FFE000"}, "tos_uri": {"javascript:alert(1)"}})
		if seen.StatusCode != http.StatusOK || !strings.Contains(seen.body, "shown darker") ||
			strings.Contains(seen.body, "<img onerror") || !strings.Contains(seen.body, `value="#FFE000"`) {
			t.Errorf("%s: the preview: %s", name, between(seen.body, `id="preview"`, "</section>"))
		}

		frame := seen.find(t, `<iframe class="dark"[^>]* src="([^"]+)" sandbox="allow-same-origin"`)
		if strings.Contains(frame, "form=") || strings.Contains(frame, b.token(at)) {
			t.Errorf("%s: the address of the preview contains the form's token: %s", name, frame)
		}

		shown := b.get(frame)
		for _, want := range []string{`href="/brand/ffe000.css"`, `data-theme="dark"`,
			words.English().Say("login.forgot"), `id="login-submit"`,
			map[string]string{"project": "your account", "client": "&#34;&gt;&lt;img onerror=x&gt;"}[name]} {
			if !strings.Contains(shown.body, want) {
				t.Errorf("%s: the previewed page has no %s: %s", name, want, shown.body)
			}
		}

		policy := shown.Header.Get("Content-Security-Policy")
		if strings.Contains(shown.body, "javascript:") || strings.Contains(shown.body, "<img") ||
			!strings.Contains(policy, "frame-ancestors 'self'; form-action 'none'") || len(shown.Cookies()) > 0 ||
			strings.Contains(policy, "script-src") {
			t.Errorf("%s: the previewed page may send forms or run scripts: %s %s", name, policy, shown.body)
		}
	}

	a := b.get("/dashboard/projects/" + w.one.ID + "/branding/preview?color=%7D")
	if a.StatusCode != http.StatusOK || strings.Contains(a.body, "/brand/") {
		t.Errorf("a preview of a value that is not a color: %s", a.Status)
	}
}

// TestBrandingFaults shows that the form reports wrong values, such as files that are not pictures,
// and keeps everything else that was typed.
func TestBrandingFaults(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	for name, at := range w.brandingPages(t) {
		token := b.token(at)
		for what, fields := range map[string][]string{
			"a file that is not a picture": {"<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"/>",
				"name", "Kept & shown", "color", "#a03060"},
			"a value that is not a color": {picture(t, color.Black), "name", "Kept & shown", "color", "red;}"},
			"a link with a script": {picture(t, color.Black), "name", "Kept & shown", "tos_uri",
				"javascript:alert(1)"},
			"a policy without host": {picture(t, color.Black), "name", "Kept & shown", "policy_uri", "https:///x"},
		} {
			a := b.upload(at, fields[0], append([]string{"form", token}, fields[1:]...)...)
			if a.StatusCode != http.StatusUnprocessableEntity ||
				!strings.Contains(a.body, `value="Kept &amp; shown"`) ||
				!strings.Contains(a.body, `id="faults"`) || strings.Contains(a.body, `href="javascript`) {
				t.Errorf("%s: %s: %s %s", name, what, a.Status, between(a.body, `id="faults"`, "</div>"))
			}

			faults := regexp.MustCompile("<[^>]*>").ReplaceAllString(between(a.body, `id="faults"`, "</div>"), " ")
			for _, bad := range []string{"brand_color", "tos_uri", "policy_uri", "the the"} {
				if strings.Contains(faults, bad) {
					t.Errorf("%s: %s: %q in the error %s", name, what, bad, faults)
				}
			}
		}
	}
}

// TestChosenLogo shows that the preview contains the chosen logo. The form keeps the logo through a
// preview and an error until it is saved.
func TestChosenLogo(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	for name, at := range w.brandingPages(t) {
		token, seen := b.token(at), html.UnescapeString(b.get(at).find(t, shownMarks.String()))
		chosen := regexp.MustCompile(`<input type="hidden" name="logo" value="([^"]+)">`)
		previewed := b.upload(at+"/preview", picture(t, color.Black), "form", token, "name", "Shop")
		if n := strings.Count(previewed.body, `srcdoc="&lt;!doctype html&gt;`); previewed.StatusCode != http.StatusOK ||
			n != 2 || !strings.Contains(previewed.body, "src=&#34;data:image/png;base64,") {
			t.Errorf("%s: the preview has %d pages: %s", name, n, previewed.Status)
		}
		kept := html.UnescapeString(previewed.find(t, chosen.String()))

		refused := b.upload(at, "", "form", token, "name", "Shop", "color", "red;}", "logo", kept)
		if refused.StatusCode != http.StatusUnprocessableEntity ||
			html.UnescapeString(refused.find(t, chosen.String())) != kept {
			t.Errorf("%s: the logo is lost with an error in another field: %s", name, refused.Status)
		}

		b.upload(at, "", "form", token, "seen", seen, "name", "Shop", "logo", kept).leadsTo(t, at+"?done=changed")
		if saved := b.get(at); !strings.Contains(saved.body, `alt="Current logo"`) {
			t.Errorf("%s: the chosen logo was not saved", name)
		}
		broken := b.upload(at+"/preview", "", "form", token, "logo", "%%%")
		if broken.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: a logo that is not base64: %s, want 400", name, broken.Status)
		}
	}
}

// TestBranding shows that valid values are saved and that the logo can be removed.
func TestBranding(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	for name, at := range w.brandingPages(t) {
		token := b.token(at)
		b.upload(at, picture(t, color.NRGBA{R: 160, G: 48, B: 96, A: 255}), "form", token, "seen",
			b.marks(at), "name", "Shop", "color", "#A03060", "tos_uri",
			"https://acme.example/terms").leadsTo(t, at+"?done=changed")
		if page := b.get(at).body; !strings.Contains(page, `src="data:image/png;base64,`) ||
			!strings.Contains(page, `value="#a03060"`) || !strings.Contains(page, "Remove the logo") {
			t.Errorf("%s: the saved values are not shown", name)
		}

		b.upload(at, "", "form", token, "seen", b.marks(at), "name", "Shop", "remove_logo", "yes").leadsTo(t,
			at+"?done=changed")
	}

	p, err := w.fabric.Projects.Find(t.Context(), w.one.ID)
	if err != nil || p.Name != "Shop" || p.Logo != "" || p.Color != "" || p.Terms != "" {
		t.Errorf("the project is %+v, %v, want the name Shop and no branding", p, err)
	}
}

// TestBrandingEvent shows that saving the branding records one event, which names only what has
// changed, and none if nothing has changed.
func TestBrandingEvent(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	for name, at := range w.brandingPages(t) {
		b.upload(at, picture(t, color.Black), "form", b.token(at), "seen", b.marks(at), "name", "Shop",
			"color", "#a03060").leadsTo(t, at+"?done=changed")
		all := w.events(t, name+".updated")
		if len(all) != 1 {
			t.Fatalf("%s: saving a color and a logo records %+v, want one event", name, all)
		}
		colorName := map[string]string{"project": "color", "client": "brand_color"}[name]
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(all[0].Detail)), func(n string) bool { return n == "name" })
		if !slices.Equal(names, []string{colorName, "logo"}) || all[0].Detail[colorName] != "#a03060" {
			t.Errorf("%s: saving a color and a logo records %v", name, all[0].Detail)
		}

		b.upload(at, "", "form", b.token(at), "seen", b.marks(at), "name", "Shop", "color", "",
			"remove_logo", "yes").leadsTo(t, at+"?done=changed")
		if all = w.events(t, name+".updated"); all[0].Detail[colorName] != "none" || all[0].Detail["logo"] != "none" {
			t.Errorf("%s: removing both records %v", name, all[0].Detail)
		}
	}

	at := "/dashboard/projects/" + w.one.ID + "/branding"
	before := len(w.events(t, "project.updated"))
	b.upload(at, "", "form", b.token(at), "seen", b.marks(at), "name", "Shop").leadsTo(t,
		at+"?done=changed")
	if after := len(w.events(t, "project.updated")); after != before {
		t.Errorf("saving no change records %d events, want none", after-before)
	}
}

// events returns the newest events with an action.
func (w *world) events(t *testing.T, action string) []audit.Event {
	t.Helper()
	found, err := w.rows.ListAudit(t.Context(), audit.Filter{Action: action}, page.Query{Size: 10})
	must(t, err)
	return found.Items
}

// TestBothLogos shows that one form sets the logos for light and dark pages, that the preview shows
// each in its theme, and that one can be removed alone.
func TestBothLogos(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	light, dark := picture(t, color.Black), picture(t, color.White)
	for name, at := range w.brandingPages(t) {
		send := func(path, light, dark string, fields ...string) answer {
			var body bytes.Buffer
			form := multipart.NewWriter(&body)
			fields = append(fields, "form", b.token(at), "seen", b.marks(at), "name", "Shop")
			for i := 0; i < len(fields); i += 2 {
				must(t, form.WriteField(fields[i], fields[i+1]))
			}
			for input, raw := range map[string]string{"file": light, "dark_file": dark} {
				part, err := form.CreateFormFile(input, "logo.png")
				must(t, err)
				_, err = part.Write([]byte(raw))
				must(t, err)
			}
			must(t, form.Close())
			return b.multipart(path, form.FormDataContentType(), &body)
		}

		saved := func() (logos [2]string) {
			p, err := w.fabric.Projects.Find(t.Context(), w.one.ID)
			must(t, err)
			if name == "project" {
				return [2]string{p.Logo, p.DarkLogo}
			}
			c, err := w.idp.Clients.Find(t.Context(), at[strings.Index(at, "/clients/")+9:len(at)-len("/branding")])
			must(t, err)
			return [2]string{c.Logo, c.DarkLogo}
		}

		previewed := send(at+"/preview", light, dark)
		kept := func(name string) string {
			return html.UnescapeString(previewed.find(t, `<input type="hidden" name="`+name+`" value="([^"]+)">`))
		}
		if kept("logo") == kept("dark_logo") {
			t.Errorf("%s: the form keeps the same picture twice", name)
		}
		frame := func(theme string) string {
			return html.UnescapeString(previewed.find(t, `(?s)<iframe class="`+theme+`"[^>]* srcdoc="([^"]+)"`))
		}
		if strings.Contains(frame("light"), kept("dark_logo")) || !strings.Contains(frame("light"), kept("logo")) ||
			strings.Contains(frame("dark"), kept("logo")) || !strings.Contains(frame("dark"), kept("dark_logo")) {
			t.Errorf("%s: the preview does not show each logo in its theme", name)
		}

		send(at, "", "", "logo", kept("logo"), "dark_logo", kept("dark_logo")).leadsTo(t, at+"?done=changed")
		first := saved()
		if first[0] == "" || first[1] == "" || first[0] == first[1] {
			t.Fatalf("%s: the logos %q were saved, want two different ones", name, first)
		}

		broken := send(at, "", "<svg/>", "name", "Shop")
		if broken.StatusCode != http.StatusUnprocessableEntity ||
			!strings.Contains(broken.body, `<a href="#f-dark_logo">Logo for dark pages must be a PNG`) ||
			!strings.Contains(broken.body, `id="f-dark_logo-fault"`) {
			t.Errorf("%s: a file that is not a picture: %s, want 422 with an error at the logo", name, broken.Status)
		}

		send(at, "", "", "remove_dark_logo", "yes").leadsTo(t, at+"?done=changed")
		if now := saved(); now != [2]string{first[0], ""} {
			t.Errorf("%s: without the logo for dark pages: %q, want only the first logo", name, now)
		}
	}
}

// TestBrandingConflict shows that saving an outdated form writes only the fields changed in it. A
// field that another operator has also changed is reported.
func TestBrandingConflict(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	at := "/dashboard/projects/" + w.one.ID + "/branding"
	token, marks, color := b.token(at), b.marks(at), "#106040"
	_, err := w.fabric.Projects.Update(t.Context(), w.one.ID, fabric.ProjectChange{Color: &color})
	must(t, err)

	b.upload(at, "", "form", token, "seen", marks, "name", "Market").leadsTo(t, at+"?done=changed")
	p, err := w.fabric.Projects.Find(t.Context(), w.one.ID)
	if err != nil || p.Name != "Market" || p.Color != color {
		t.Errorf("after another operator's change, the project is %+v, %v, want both changes", p, err)
	}

	a := b.upload(at, "", "form", token, "seen", marks, "name", "Market", "color", "#a03060")
	if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, "to “#106040”") {
		t.Errorf("a form that conflicts with another change: %s %s, want 422 with the other value",
			a.Status, between(a.body, `id="faults"`, "</div>"))
	}
}
