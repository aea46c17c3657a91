package oidc_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/brand"
	"github.com/selvage/selvage/internal/cache"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/store/storetest"
)

// TestBrand shows that login pages have the color and links of the client. If the client has none,
// they have the color and links of its project.
func TestBrand(t *testing.T) {
	w := newWorld(t)
	own, _ := w.client(func(c *idp.Client) {
		c.BrandColor, c.TermsURI, c.PolicyURI = "#a03060", "https://acme.example/terms", "https://acme.example/privacy"
	})
	plain, _ := w.client(nil)

	b := w.newBrowser()
	page := b.authorize(request(own))
	wantText(t, "the login page of a client with a brand", page,
		`href="/brand/a03060.css"`, `href="https://acme.example/terms"`, `href="https://acme.example/privacy"`)
	again := b.logIn(page, email, "wrong")
	wantText(t, "the login page after a wrong password", again, `href="/brand/a03060.css"`)

	// A client without a brand has the brand of its project, if there is one.
	wantNoText(t, "the login page in a project without a brand", b.authorize(request(plain)), "/brand/")
	_, err := w.fabric.Projects.Update(t.Context(), w.project.ID, fabric.ProjectChange{Color: new("#106040")})
	must(t, err)
	const projectSheet = `href="/brand/106040.css"`
	wantText(t, "the login page in a project with a brand", b.authorize(request(plain)), projectSheet)
	wantText(t, "the account page in a project with a brand", b.account(), projectSheet)

	// A page opened from a link in an email is also branded.
	token := strings.Repeat("a", 52)
	must(t, w.rows.CreateLink(t.Context(), idp.Link{
		Hash:         session.Digest(token),
		Purpose:      mail.Reset,
		ProjectID:    w.project.ID,
		SubscriberID: w.ada.ID,
		Email:        email,
		Bound:        email,
		Created:      w.now(),
		Expires:      w.now().Add(time.Hour),
	}))
	set := w.newBrowser().post("/reset", url.Values{"token": {token}, "password": {"granite-otter-nine"}})
	wantText(t, "the page after a password was reset", set, `id="password-set"`, projectSheet,
		`id="notice-account" href="/account?project=`+w.project.ID+`"`)

	// White is unreadable on a light page and is darkened. Other file names lead to no style sheet.
	sheet := b.get("/brand/ffffff.css")
	wantStatus(t, "the style sheet for white", sheet, http.StatusOK)
	wantHeader(t, "the style sheet for white", sheet, "Content-Type", "text/css; charset=utf-8")
	wantText(t, "the style sheet for white", sheet, "--thread: light-dark(#")
	wantNoText(t, "the style sheet for white", sheet, "--thread: light-dark(#ffffff")
	for _, path := range []string{"/brand/red.css", "/brand/106040", "/brand/10604G.css", "/brand/106040;}.css"} {
		wantStatus(t, path, b.get(path), http.StatusNotFound)
	}
}

// picture returns a logo in color c, made from a file that also contains a script.
func picture(t *testing.T, c color.Color) brand.Logo {
	t.Helper()
	drawn := image.NewNRGBA(image.Rect(0, 0, 60, 20))
	drawn.Set(3, 3, c)
	var file bytes.Buffer
	must(t, png.Encode(&file, drawn))
	file.WriteString("<script>alert(1)</script>")
	logo, err := brand.MakeLogo(t.Context(), "logo", file.Bytes())
	must(t, err)
	return logo
}

// TestLogo shows that pages and emails have the logo of the client or, if the client has none, the
// logo of its project. The image is re-encoded, so that it is harmless.
func TestLogo(t *testing.T) {
	w := newWorld(t)
	own, _ := w.client(func(c *idp.Client) { c.Name = `"><script>alert(1)</script>` })
	ctx := t.Context()
	setLogo := func(logo brand.Logo) idp.Client {
		c, err := w.idp.Clients.SetLogos(ctx, own.ID, brand.Logos{brand.Light: logo})
		must(t, err)
		return c
	}

	// The logo of the project is shown until the client has its own.
	project, err := w.fabric.Projects.Update(ctx, w.project.ID,
		fabric.ProjectChange{Logos: brand.Logos{brand.Light: picture(t, color.Black)}})
	must(t, err)
	b := w.newBrowser()
	page := b.authorize(request(own))
	wantText(t, "the login page with the project's logo", page, `src="/brand/logo/`+project.Logo+`.png"`)
	wantNoText(t, "the login page with the project's logo", page, "<script>alert")

	c := setLogo(picture(t, color.White))
	page = b.authorize(request(own))
	wantText(t, "the login page with the client's logo", page, c.Logo)
	wantNoText(t, "the login page with the client's logo", page, project.Logo)

	// The image is served with headers that make it harmless and cacheable.
	path := "/brand/logo/" + c.Logo + ".png"
	served := b.get(path)
	wantStatus(t, "the logo", served, http.StatusOK)
	wantHeader(t, "the logo", served, "Content-Type", "image/png")
	wantHeader(t, "the logo", served, "X-Content-Type-Options", "nosniff")
	wantNoText(t, "the logo", served, "script")
	for header, want := range map[string]string{
		"Content-Security-Policy": "sandbox",
		"Cache-Control":           "immutable",
	} {
		if value := served.header.Get(header); !strings.Contains(value, want) {
			t.Errorf("the logo has %s: %s, want it to contain %s", header, value, want)
		}
	}
	etag := served.header.Get("ETag")
	if etag == "" {
		t.Error("the logo has no ETag, want one")
	}
	cached := w.answer("GET", path, nil, "If-None-Match", etag)
	if cached.Code != http.StatusNotModified {
		t.Errorf("the logo, requested with its ETag: status %d, want 304", cached.Code)
	}
	if n := cached.Body.Len(); n != 0 {
		t.Errorf("the logo, requested with its ETag: %d bytes, want none", n)
	}

	svg := []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`)
	if _, err := brand.MakeLogo(ctx, "logo", svg); err == nil {
		t.Error("an SVG is accepted")
	}

	// Emails contain the logo.
	draft, err := w.idp.Letters.Write(ctx, mail.Letter{Kind: mail.Reset, ProjectID: w.project.ID, To: email})
	must(t, err)
	if len(draft.Brand.Logo.PNG) == 0 {
		t.Error("an email contains no logo, want one")
	}

	// Without its own logo, the client uses the logo of its project again.
	setLogo(brand.Logo{})
	wantText(t, "the login page after the logo was removed", b.authorize(request(own)), project.Logo)

	for _, path := range []string{
		path, "/brand/logo/" + project.Logo, "/brand/logo/x.png", "/brand/logo/..%2f..%2fsecret.png",
		"/brand/logo/%00.png",
	} {
		wantStatus(t, path, b.get(path), http.StatusNotFound)
	}
}

// TestDarkLogo shows that pages offer the browser a logo for dark pages, and that emails have the one
// for light pages.
func TestDarkLogo(t *testing.T) {
	w := newWorld(t)
	own, _ := w.client(nil)
	light, dark := picture(t, color.Black), picture(t, color.White)
	setProject := func(logos brand.Logos) fabric.Project {
		project, err := w.fabric.Projects.Update(t.Context(), w.project.ID, fabric.ProjectChange{Logos: logos})
		must(t, err)
		return project
	}
	setClient := func(logos brand.Logos) idp.Client {
		c, err := w.idp.Clients.SetLogos(t.Context(), own.ID, logos)
		must(t, err)
		return c
	}

	b := w.newBrowser()
	wantLogos := func(name, forDark, forAll string) {
		t.Helper()
		page := b.authorize(request(own))
		wantText(t, name, page, `src="/brand/logo/`+forAll+`.png"`)
		if forDark == "" {
			wantNoText(t, name, page, "<source")
			return
		}
		wantText(t, name, page,
			`<source media="(prefers-color-scheme: dark)" srcset="/brand/logo/`+forDark+`.png"`)
	}

	project := setProject(brand.Logos{brand.Light: light, brand.Dark: dark})
	wantLogos("the project has both", project.DarkLogo, project.Logo)
	served := b.get("/brand/logo/" + project.DarkLogo + ".png")
	wantStatus(t, "the logo for dark pages", served, http.StatusOK)
	if served.body != string(dark.PNG) {
		t.Errorf("the logo for dark pages has %d bytes, want the stored picture", len(served.body))
	}
	draft, err := w.idp.Letters.Write(t.Context(), mail.Letter{Kind: mail.Reset, ProjectID: w.project.ID, To: email})
	must(t, err)
	if !bytes.Equal(draft.Brand.Logo.PNG, light.PNG) {
		t.Error("an email does not have the logo for light pages")
	}

	// The logos of a client replace both logos of its project.
	c := setClient(brand.Logos{brand.Light: picture(t, color.Gray{Y: 99})})
	wantLogos("the client has one for light pages", "", c.Logo)
	setClient(brand.Logos{brand.Light: {}, brand.Dark: dark})
	wantLogos("the client has one for dark pages", "", project.DarkLogo)
	setClient(brand.Logos{brand.Dark: {}})
	wantLogos("the client has none again", project.DarkLogo, project.Logo)

	setProject(brand.Logos{brand.Dark: {}})
	wantLogos("the project has none for dark pages", "", project.Logo)
}

// TestBrandRefused shows that branding is rejected if pages cannot show it.
func TestBrandRefused(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(*idp.Client){
		"a color with a second property": func(c *idp.Client) { c.BrandColor = "#a03060; background: red" },
		"the name of a color":            func(c *idp.Client) { c.BrandColor = "red" },
		"a script":                       func(c *idp.Client) { c.TermsURI = "javascript:alert(1)" },
		"data":                           func(c *idp.Client) { c.PolicyURI = "data:text/html,x" },
		"a path":                         func(c *idp.Client) { c.PolicyURI = "/privacy" },
		"a password":                     func(c *idp.Client) { c.TermsURI = "https://a:b@acme.example/" },
	} {
		n := idp.Client{ProjectID: w.project.ID, Name: "App", Type: idp.SPA, RedirectURIs: []string{callback}}
		change(&n)
		if _, _, err := w.idp.Clients.Create(t.Context(), n); err == nil {
			t.Errorf("branding with %s is accepted", name)
		}
	}
}

// TestBrandLeavesTheRest shows that a change of branding does not restore a redirect URI that
// another node removes at the same time.
func TestBrandLeavesTheRest(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(func(c *idp.Client) {
		c.RedirectURIs = []string{"https://acme.example/cb", "https://taken.example/cb"}
	})
	_, err := w.idp.Clients.Find(t.Context(), c.ID)
	must(t, err)

	taken := false
	must(t, w.idp.Clients.Change(t.Context(), c.ID, func(c *idp.Client) {
		c.BrandColor = "#a03060"
		if !taken {
			taken = true
			other := *c
			other.RedirectURIs, other.Updated = other.RedirectURIs[:1], other.Updated.Add(time.Second)
			must(t, w.rows.ReplaceClient(t.Context(), other, nil, c.Updated))
		}
	}))

	changed, err := w.rows.FindClient(t.Context(), c.ID)
	must(t, err)
	if changed.BrandColor != "#a03060" {
		t.Errorf("the client has the color %q, want #a03060", changed.BrandColor)
	}
	if len(changed.RedirectURIs) != 1 {
		t.Errorf("the client redirects to %q, want only the remaining URI", changed.RedirectURIs)
	}
}

// A countingStore counts how many times logos are read.
type countingStore struct {
	fabric.ProjectStore
	logos atomic.Int64
}

func (c *countingStore) FindLogo(ctx context.Context, name string) ([]byte, error) {
	c.logos.Add(1)
	return c.ProjectStore.FindLogo(ctx, name)
}

// TestLogoIsRemembered shows that logos are cached, and that a logo removed on another node
// disappears on this node within a second.
func TestLogoIsRemembered(t *testing.T) {
	w := newWorld(t)
	rows := &countingStore{ProjectStore: w.rows}
	node := fabric.New(fabric.Config{
		Stores: fabric.Stores{Projects: rows},
		Ring:   storetest.Ring(t, w.dir, w.rows, w.now),
		Now:    w.now,
	})
	project, err := w.fabric.Projects.Update(t.Context(), w.project.ID,
		fabric.ProjectChange{Logos: brand.Logos{brand.Light: picture(t, color.Black)}})
	must(t, err)

	began := w.now()
	for range 500 {
		body, err := node.Projects.FindLogo(t.Context(), project.Logo)
		must(t, err)
		if len(body) == 0 {
			t.Fatal("the logo is empty")
		}
	}
	took := w.now().Sub(began)
	if n, most := rows.logos.Load(), int64(took/cache.For)+1; n > most {
		t.Errorf("500 requests of a logo within %v read it %d times, want at most %d", took, n, most)
	}

	_, err = w.fabric.Projects.Update(t.Context(), w.project.ID,
		fabric.ProjectChange{Logos: brand.Logos{brand.Light: {}}})
	must(t, err)
	w.pass(time.Second)
	if _, err := node.Projects.FindLogo(t.Context(), project.Logo); !errors.Is(err, problem.NotFound) {
		t.Errorf("a logo removed a second ago: %v, want not found", err)
	}
}
