package dashboard_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"maps"
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
	const width, height = 60, 20
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		img.Set(i%width, i/width, c)
	}
	var out bytes.Buffer
	must(t, png.Encode(&out, img))
	return out.String()
}

// A brandingForm is the branding form of a project or of a client.
type brandingForm struct {
	name     string // what the form brands: project or client
	at       string // the path of its page
	clientID string
	color    string // the name of the color in audit events
}

// brandingForms creates a client, and returns the branding forms of the project and the client.
func (w *world) brandingForms(t *testing.T) []brandingForm {
	t.Helper()
	c, _, err := w.idp.Clients.Create(t.Context(), idp.Client{
		ProjectID:    w.one.ID,
		Type:         idp.Web,
		Name:         "Shop",
		RedirectURIs: []string{"https://shop.example/cb"},
	})
	must(t, err)
	base := "/dashboard/projects/" + w.one.ID
	return []brandingForm{
		{name: "project", at: base + "/branding", color: "color"},
		{name: "client", at: base + "/clients/" + c.ID + "/branding", clientID: c.ID, color: "brand_color"},
	}
}

// eachBrandingForm runs a test for each branding form.
func (b browser) eachBrandingForm(t *testing.T, test func(t *testing.T, f brandingForm)) {
	t.Helper()
	for _, f := range b.brandingForms(t) {
		t.Run(f.name, func(t *testing.T) { test(t, f) })
	}
}

// TestBrandingPreview shows that a preview contains the typed values, escaped, and rates the
// contrast of the color. The login page in the preview cannot be used to sign in.
func TestBrandingPreview(t *testing.T) {
	titles := map[string]string{"project": "your account", "client": "&#34;&gt;&lt;img onerror=x&gt;"}
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	b.eachBrandingForm(t, func(t *testing.T, f brandingForm) {
		preview := b.post(f.at, f.at+"/preview", url.Values{
			"name":    {`"><img onerror=x>`},
			"color":   {"#FFE000"},
			"tos_uri": {"javascript:alert(1)"},
		})
		preview.wantStatus(t, http.StatusOK)
		preview.wantText(t, "shown darker", `value="#FFE000"`)
		preview.wantNoText(t, "<img onerror")

		frame := preview.find(t, `<iframe class="dark"[^>]* src="([^"]+)" sandbox="allow-same-origin"`)
		for _, token := range []string{"form=", b.token(f.at)} {
			if strings.Contains(frame, token) {
				t.Errorf("the address of the preview contains the form's token: %s", frame)
			}
		}

		framed := b.get(frame)
		framed.wantText(t, `href="/brand/ffe000.css"`, `data-theme="dark"`,
			words.English().Say("login.forgot"), `id="login-submit"`, titles[f.name])
		framed.wantNoText(t, "javascript:", "<img")
		policy := framed.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "frame-ancestors 'self'; form-action 'none'") {
			t.Errorf("the previewed page may send forms: its policy is %s", policy)
		}
		if strings.Contains(policy, "script-src") {
			t.Errorf("the previewed page may run scripts: its policy is %s", policy)
		}
		if cookies := framed.Cookies(); len(cookies) > 0 {
			t.Errorf("the previewed page sets the cookies %v, want none", cookies)
		}
	})

	noColor := b.get("/dashboard/projects/" + w.one.ID + "/branding/preview?color=%7D")
	noColor.wantStatus(t, http.StatusOK)
	noColor.wantNoText(t, "/brand/")
}

// TestBrandingFaults shows that the form reports wrong values, such as files that are not pictures,
// and keeps everything else that was typed.
func TestBrandingFaults(t *testing.T) {
	valid := picture(t, color.Black)
	tests := []struct{ name, file, field, value string }{
		{"a file that is not a picture", `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`,
			"color", "#a03060"},
		{"a value that is not a color", valid, "color", "red;}"},
		{"a link with a script", valid, "tos_uri", "javascript:alert(1)"},
		{"a policy without a host", valid, "policy_uri", "https:///x"},
	}
	tags := regexp.MustCompile("<[^>]*>")

	_, b := newWorld(t).operator("ann@example.com", ofAll)
	b.eachBrandingForm(t, func(t *testing.T, f brandingForm) {
		token := b.token(f.at)
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				a := b.upload(f.at, tt.file, "form", token, "name", "Kept & shown", tt.field, tt.value)
				a.wantRefused(t, `value="Kept &amp; shown"`, `id="faults"`)
				a.wantNoText(t, `href="javascript`)

				faults := tags.ReplaceAllString(between(a.body, `id="faults"`, "</div>"), " ")
				for _, bad := range []string{"brand_color", "tos_uri", "policy_uri", "the the"} {
					if strings.Contains(faults, bad) {
						t.Errorf("the error contains %q: %s", bad, faults)
					}
				}
			})
		}
	})
}

// TestBranding shows that valid values are saved and that the logo can be removed.
func TestBranding(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	b.eachBrandingForm(t, func(t *testing.T, f brandingForm) {
		token, logo := b.token(f.at), picture(t, color.NRGBA{R: 160, G: 48, B: 96, A: 255})
		saved := b.upload(f.at, logo, "form", token, "seen", b.marks(f.at), "name", "Shop",
			"color", "#A03060", "tos_uri", "https://acme.example/terms")
		saved.leadsTo(t, f.at+"?done=changed")
		b.get(f.at).wantText(t, `src="data:image/png;base64,`, `value="#a03060"`, "Remove the logo")

		removed := b.upload(f.at, "", "form", token, "seen", b.marks(f.at), "name", "Shop", "remove_logo", "yes")
		removed.leadsTo(t, f.at+"?done=changed")
	})

	p, err := w.fabric.Projects.Find(t.Context(), w.one.ID)
	must(t, err)
	if p.Name != "Shop" {
		t.Errorf("the project is named %q, want Shop", p.Name)
	}
	for what, got := range map[string]string{"logo": p.Logo, "color": p.Color, "terms": p.Terms} {
		if got != "" {
			t.Errorf("the project has the %s %q, want none", what, got)
		}
	}
}

// TestBrandingEvent shows that saving the branding records one event, which names only what has
// changed. If nothing has changed, no event is recorded.
func TestBrandingEvent(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	b.eachBrandingForm(t, func(t *testing.T, f brandingForm) {
		b.upload(f.at, picture(t, color.Black), "form", b.token(f.at), "seen", b.marks(f.at), "name", "Shop",
			"color", "#a03060").leadsTo(t, f.at+"?done=changed")
		set := w.events(t, f.name+".updated")
		if len(set) != 1 {
			t.Fatalf("saving a color and a logo records %+v, want one event", set)
		}
		changed := slices.Sorted(maps.Keys(set[0].Detail))
		changed = slices.DeleteFunc(changed, func(name string) bool { return name == "name" })
		if want := []string{f.color, "logo"}; !slices.Equal(changed, want) {
			t.Errorf("saving a color and a logo records changes of %v, want %v", changed, want)
		}
		if got := set[0].Detail[f.color]; got != "#a03060" {
			t.Errorf("saving a color records %q, want #a03060", got)
		}

		b.upload(f.at, "", "form", b.token(f.at), "seen", b.marks(f.at), "name", "Shop", "color", "",
			"remove_logo", "yes").leadsTo(t, f.at+"?done=changed")
		removed := w.events(t, f.name+".updated")[0]
		for _, name := range []string{f.color, "logo"} {
			if got := removed.Detail[name]; got != "none" {
				t.Errorf("removing the color and the logo records the %s %q, want none", name, got)
			}
		}
	})

	at := "/dashboard/projects/" + w.one.ID + "/branding"
	before := len(w.events(t, "project.updated"))
	same := b.upload(at, "", "form", b.token(at), "seen", b.marks(at), "name", "Shop")
	same.leadsTo(t, at+"?done=changed")
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

// TestBrandingConflict shows that saving an outdated form writes only the fields changed in it. A
// field that another operator has also changed is reported.
func TestBrandingConflict(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	at := "/dashboard/projects/" + w.one.ID + "/branding"
	token, marks, green := b.token(at), b.marks(at), "#106040"
	_, err := w.fabric.Projects.Update(t.Context(), w.one.ID, fabric.ProjectChange{Color: &green})
	must(t, err)

	b.upload(at, "", "form", token, "seen", marks, "name", "Market").leadsTo(t, at+"?done=changed")
	p, err := w.fabric.Projects.Find(t.Context(), w.one.ID)
	must(t, err)
	if p.Name != "Market" {
		t.Errorf("the project is named %q, want Market, as in the form", p.Name)
	}
	if p.Color != green {
		t.Errorf("the project has the color %q, want %q, as the other operator chose", p.Color, green)
	}

	conflict := b.upload(at, "", "form", token, "seen", marks, "name", "Market", "color", "#a03060")
	conflict.wantRefused(t, "to “#106040”")
}
