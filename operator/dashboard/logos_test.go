package dashboard_test

import (
	"bytes"
	"html"
	"image/color"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
)

// logos holds the two pictures of a branding form.
type logos struct{ light, dark string }

// uploadLogos submits a branding form with files for both logos.
func (b browser) uploadLogos(f brandingForm, path string, files logos, fields ...string) answer {
	b.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	fields = append(fields, "form", b.token(f.at), "seen", b.marks(f.at), "name", "Shop")
	for i := 0; i < len(fields); i += 2 {
		must(b, form.WriteField(fields[i], fields[i+1]))
	}
	for input, file := range map[string]string{"file": files.light, "dark_file": files.dark} {
		part, err := form.CreateFormFile(input, "logo.png")
		must(b, err)
		_, err = io.WriteString(part, file)
		must(b, err)
	}
	must(b, form.Close())
	return b.multipart(path, form.FormDataContentType(), &body)
}

// savedLogos returns the stored logos of the project or the client.
func (w *world) savedLogos(t *testing.T, f brandingForm) logos {
	t.Helper()
	if f.clientID == "" {
		p, err := w.fabric.Projects.Find(t.Context(), w.one.ID)
		must(t, err)
		return logos{light: p.Logo, dark: p.DarkLogo}
	}
	c, err := w.idp.Clients.Find(t.Context(), f.clientID)
	must(t, err)
	return logos{light: c.Logo, dark: c.DarkLogo}
}

// TestChosenLogo shows that the preview contains the chosen logo. The form keeps the logo through a
// preview and an error until it is saved.
func TestChosenLogo(t *testing.T) {
	const keptLogo = `<input type="hidden" name="logo" value="([^"]+)">`
	_, b := newWorld(t).operator("ann@example.com", ofAll)
	b.eachBrandingForm(t, func(t *testing.T, f brandingForm) {
		token, seen := b.token(f.at), b.marks(f.at)
		preview := b.upload(f.at+"/preview", picture(t, color.Black), "form", token, "name", "Shop")
		preview.wantStatus(t, http.StatusOK)
		preview.wantText(t, "src=&#34;data:image/png;base64,")
		if n := strings.Count(preview.body, `srcdoc="&lt;!doctype html&gt;`); n != 2 {
			t.Errorf("the preview has %d pages, want 2", n)
		}
		logo := preview.find(t, keptLogo)

		refused := b.upload(f.at, "", "form", token, "name", "Shop", "color", "red;}", "logo", logo)
		refused.wantRefused(t)
		if refused.find(t, keptLogo) != logo {
			t.Error("the logo is lost with an error in another field")
		}

		saved := b.upload(f.at, "", "form", token, "seen", seen, "name", "Shop", "logo", logo)
		saved.leadsTo(t, f.at+"?done=changed")
		b.get(f.at).wantText(t, `alt="Current logo"`)

		notBase64 := b.upload(f.at+"/preview", "", "form", token, "logo", "%%%")
		notBase64.wantStatus(t, http.StatusBadRequest)
	})
}

// TestBothLogos shows that one form sets the logos for light and dark pages, that the preview shows
// each logo in its theme, and that the logo for dark pages can be removed alone.
func TestBothLogos(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	pictures := logos{light: picture(t, color.Black), dark: picture(t, color.White)}
	b.eachBrandingForm(t, func(t *testing.T, f brandingForm) {
		preview := b.uploadLogos(f, f.at+"/preview", pictures)
		kept := logos{
			light: preview.find(t, `<input type="hidden" name="logo" value="([^"]+)">`),
			dark:  preview.find(t, `<input type="hidden" name="dark_logo" value="([^"]+)">`),
		}
		if kept.light == kept.dark {
			t.Error("the form keeps the same picture twice")
		}
		for _, tt := range []struct{ theme, own, other string }{
			{theme: "light", own: kept.light, other: kept.dark},
			{theme: "dark", own: kept.dark, other: kept.light},
		} {
			page := preview.find(t, `(?s)<iframe class="`+tt.theme+`"[^>]* srcdoc="([^"]+)"`)
			frame := html.UnescapeString(page) // undo the escaping within that page, too
			if !strings.Contains(frame, tt.own) {
				t.Errorf("the preview in the %s theme lacks its logo", tt.theme)
			}
			if strings.Contains(frame, tt.other) {
				t.Errorf("the preview in the %s theme shows the other logo", tt.theme)
			}
		}

		b.uploadLogos(f, f.at, logos{}, "logo", kept.light, "dark_logo", kept.dark).
			leadsTo(t, f.at+"?done=changed")
		saved := w.savedLogos(t, f)
		if saved.light == "" || saved.dark == "" {
			t.Fatalf("the logos %+v were saved, want both", saved)
		}
		if saved.light == saved.dark {
			t.Fatalf("the logo %q was saved twice, want two different logos", saved.light)
		}

		broken := b.uploadLogos(f, f.at, logos{dark: "<svg/>"}, "name", "Shop")
		broken.wantRefused(t, `<a href="#f-dark_logo">Logo for dark pages must be a PNG`, `id="f-dark_logo-fault"`)

		b.uploadLogos(f, f.at, logos{}, "remove_dark_logo", "yes").leadsTo(t, f.at+"?done=changed")
		want := logos{light: saved.light}
		if got := w.savedLogos(t, f); got != want {
			t.Errorf("without the logo for dark pages, the logos are %q, want %q", got, want)
		}
	})
}
