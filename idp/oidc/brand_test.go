package oidc_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/png"
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

	b := w.browser()
	page := b.authorize(request(own))
	for _, want := range []string{`href="/brand/a03060.css"`, `href="https://acme.example/terms"`,
		`href="https://acme.example/privacy"`} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the login page of a client with a brand has no %s:\n%s", want, page.body)
		}
	}

	if again := b.logIn(page, email, "wrong"); !strings.Contains(again.body, `href="/brand/a03060.css"`) {
		t.Error("after a wrong password the color is missing")
	}

	// A client without a brand has the brand of its project, if there is one.
	if page := b.authorize(request(plain)); strings.Contains(page.body, "/brand/") {
		t.Error("a client without a brand, in a project without one, has a color")
	}
	color := "#106040"
	_, err := w.fabric.Projects.Update(context.Background(), w.project.ID,
		fabric.ProjectChange{Color: &color})
	must(t, err)
	for name, page := range map[string]reply{"sign-in": b.authorize(request(plain)), "account": b.account()} {
		if !strings.Contains(page.body, `href="/brand/106040.css"`) {
			t.Errorf("the %s page does not have the project's color", name)
		}
	}

	// A page opened from a link in an email is also branded.
	token := strings.Repeat("a", 52)
	must(t, w.rows.CreateLink(t.Context(), idp.Link{
		Hash: session.Digest(token), Purpose: mail.Reset, ProjectID: w.project.ID, SubscriberID: w.ada.ID,
		Email: email, Bound: email,
		Created: w.now(), Expires: w.now().Add(time.Hour),
	}))
	set := w.browser().post("/reset", url.Values{"token": {token}, "password": {"granite-otter-nine"}})
	for _, want := range []string{`id="password-set"`, `href="/brand/106040.css"`,
		`id="notice-account" href="/account?project=` + w.project.ID + `"`} {
		if !strings.Contains(set.body, want) {
			t.Errorf("the page of a used link has no %s:\n%s", want, set.body)
		}
	}

	// A color with too little contrast is darkened. Other file names lead to no style sheet.
	sheet := b.get("/brand/ffffff.css")
	if sheet.status != 200 || !strings.Contains(sheet.body, "--thread: light-dark(#") ||
		strings.Contains(sheet.body, "--thread: light-dark(#ffffff") ||
		sheet.header.Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("white, which is unreadable on a light page: %d %s, want a darker color", sheet.status, sheet.body)
	}

	for _, bad := range []string{"/brand/red.css", "/brand/106040", "/brand/10604G.css", "/brand/106040;}.css"} {
		if got := b.get(bad); got.status != 404 {
			t.Errorf("%s: %d, want 404", bad, got.status)
		}
	}
}

// picture returns a logo in color c, made from a file that also contains a script.
func picture(t *testing.T, c color.Color) brand.Logo {
	t.Helper()
	p := image.NewNRGBA(image.Rect(0, 0, 60, 20))
	p.Set(3, 3, c)
	var out bytes.Buffer
	must(t, png.Encode(&out, p))
	l, err := brand.MakeLogo(t.Context(), "logo", append(out.Bytes(), "<script>alert(1)</script>"...))
	must(t, err)
	return l
}

// TestLogo shows that pages and emails have the logo of the client or, if the client has none, the
// logo of its project. The image is re-encoded, so that it is harmless.
func TestLogo(t *testing.T) {
	w := newWorld(t)
	own, _ := w.client(func(c *idp.Client) { c.Name = `"><script>alert(1)</script>` })
	ctx := context.Background()
	draw := func(c color.Color) brand.Logo { return picture(t, c) }

	// The logo of the project is shown until the client has its own.
	of, err := w.fabric.Projects.Update(ctx, w.project.ID,
		fabric.ProjectChange{Logos: brand.Logos{brand.Light: draw(color.Black)}})
	must(t, err)
	b := w.browser()
	if page := b.authorize(request(own)); !strings.Contains(page.body, `src="/brand/logo/`+of.Logo+`.png"`) ||
		strings.Contains(page.body, "<script>alert") {
		t.Errorf("the login page does not have the project's logo:\n%s", page.body)
	}

	c, err := w.idp.Clients.SetLogos(ctx, own.ID, brand.Logos{brand.Light: draw(color.White)})
	must(t, err)
	if page := b.authorize(request(own)); !strings.Contains(page.body, c.Logo) ||
		strings.Contains(page.body, of.Logo) {
		t.Error("the login page does not have the client's logo")
	}

	// The image is served with headers that make it harmless and cacheable.
	got := b.get("/brand/logo/" + c.Logo + ".png")
	if got.status != 200 || got.header.Get("Content-Type") != "image/png" ||
		got.header.Get("X-Content-Type-Options") != "nosniff" ||
		!strings.Contains(got.header.Get("Content-Security-Policy"), "sandbox") ||
		strings.Contains(got.body, "script") {
		t.Errorf("the logo: %d %v, want a PNG with safe headers", got.status, got.header)
	}

	if etag := got.header.Get("ETag"); etag == "" || !strings.Contains(got.header.Get("Cache-Control"), "immutable") {
		t.Errorf("the logo has the headers %v, want an ETag and Cache-Control: immutable", got.header)
	} else if again := w.answer("GET", "/brand/logo/"+c.Logo+".png", nil, "If-None-Match",
		etag); again.Code != 304 || again.Body.Len() != 0 {
		t.Errorf("the logo, requested with its ETag: %d, %d bytes, want 304", again.Code, again.Body.Len())
	}

	svg := []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`)
	if _, err := brand.MakeLogo(t.Context(), "logo", svg); err == nil {
		t.Error("an SVG is accepted")
	}

	// Emails contain the logo.
	draft, err := w.idp.Letters.Write(ctx, mail.Letter{Kind: mail.Reset, ProjectID: w.project.ID, To: email})
	if err != nil || len(draft.Brand.Logo.PNG) == 0 {
		t.Errorf("an email does not contain the logo: %v", err)
	}

	// Without its own logo, the client uses the logo of its project again.
	_, err = w.idp.Clients.SetLogos(ctx, own.ID, brand.Logos{brand.Light: {}})
	must(t, err)
	if page := b.authorize(request(own)); !strings.Contains(page.body, of.Logo) {
		t.Error("a client whose logo was removed does not have its project's")
	}

	for _, bad := range []string{"/brand/logo/" + c.Logo + ".png", "/brand/logo/" + of.Logo,
		"/brand/logo/x.png", "/brand/logo/..%2f..%2fsecret.png", "/brand/logo/%00.png"} {
		if got := b.get(bad); got.status != 404 {
			t.Errorf("%s: %d, want 404", bad, got.status)
		}
	}
}

// TestDarkLogo shows that pages offer the browser a logo for dark pages, and that emails have the one for
// light pages.
func TestDarkLogo(t *testing.T) {
	w := newWorld(t)
	own, _ := w.client(func(*idp.Client) {})
	light, dark := picture(t, color.Black), picture(t, color.White)
	of, err := w.fabric.Projects.Update(t.Context(), w.project.ID,
		fabric.ProjectChange{Logos: brand.Logos{brand.Light: light, brand.Dark: dark}})
	must(t, err)
	b := w.browser()
	shown := func(name, forDark, forAll string) {
		t.Helper()
		page := b.authorize(request(own)).body
		source := `<source media="(prefers-color-scheme: dark)" srcset="/brand/logo/` + forDark + `.png"`
		if strings.Contains(page, "<source") != (forDark != "") || forDark != "" && !strings.Contains(page, source) ||
			!strings.Contains(page, `src="/brand/logo/`+forAll+`.png"`) {
			_, logo, _ := strings.Cut(page, `<p class="logo">`)
			t.Errorf("%s: the page shows %.400s", name, logo)
		}
	}

	shown("both", of.DarkLogo, of.Logo)
	if got := b.get("/brand/logo/" + of.DarkLogo + ".png"); got.status != 200 || got.body != string(dark.PNG) {
		t.Errorf("the logo for dark pages: %d, %d bytes, want the stored picture", got.status, len(got.body))
	}
	draft, err := w.idp.Letters.Write(t.Context(), mail.Letter{Kind: mail.Reset, ProjectID: w.project.ID, To: email})
	if err != nil || !bytes.Equal(draft.Brand.Logo.PNG, light.PNG) {
		t.Errorf("an email does not have the logo for light pages: %v", err)
	}

	// The logos of a client replace both logos of its project.
	c, err := w.idp.Clients.SetLogos(t.Context(), own.ID, brand.Logos{brand.Light: picture(t, color.Gray{Y: 99})})
	must(t, err)
	shown("the client has one for light pages", "", c.Logo)
	_, err = w.idp.Clients.SetLogos(t.Context(), own.ID, brand.Logos{brand.Light: {}, brand.Dark: dark})
	must(t, err)
	shown("the client has one for dark pages", "", of.DarkLogo)
	_, err = w.idp.Clients.SetLogos(t.Context(), own.ID, brand.Logos{brand.Dark: {}})
	must(t, err)
	shown("the client has none again", of.DarkLogo, of.Logo)

	_, err = w.fabric.Projects.Update(t.Context(), w.project.ID,
		fabric.ProjectChange{Logos: brand.Logos{brand.Dark: {}}})
	must(t, err)
	shown("the project has none for dark pages", "", of.Logo)
}

// TestBrandRefused shows that branding is rejected if pages cannot show it.
func TestBrandRefused(t *testing.T) {
	w := newWorld(t)
	for what, change := range map[string]func(*idp.Client){
		"a color with a second property": func(c *idp.Client) {
			c.BrandColor = "#a03060; background: red"
		}, "the name of a color": func(c *idp.Client) { c.BrandColor = "red" },
		"a script": func(c *idp.Client) { c.TermsURI = "javascript:alert(1)" }, "data": func(c *idp.Client) {
			c.PolicyURI = "data:text/html,x"
		},
		"a path": func(c *idp.Client) { c.PolicyURI = "/privacy" }, "a password": func(c *idp.Client) {
			c.TermsURI = "https://a:b@acme.example/"
		},
	} {

		n := idp.Client{ProjectID: w.project.ID, Name: "App", Type: idp.SPA, RedirectURIs: []string{callback}}
		change(&n)
		if _, _, err := w.idp.Clients.Create(context.Background(), n); err == nil {
			t.Errorf("branding with %s is accepted", what)
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

	now, err := w.rows.FindClient(t.Context(), c.ID)
	must(t, err)
	if now.BrandColor != "#a03060" || len(now.RedirectURIs) != 1 {
		t.Errorf("the client has the color %q and redirects to %q, want the new color and one URI",
			now.BrandColor, now.RedirectURIs)
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
	node := fabric.New(fabric.Config{Stores: fabric.Stores{Projects: rows},
		Ring: storetest.Ring(t, w.dir, w.rows, w.now),
		Now:  w.now})
	p, err := w.fabric.Projects.Update(t.Context(), w.project.ID,
		fabric.ProjectChange{Logos: brand.Logos{brand.Light: picture(t, color.Black)}})
	must(t, err)

	began := w.now()
	for range 500 {
		body, err := node.Projects.FindLogo(t.Context(), p.Logo)
		if err != nil || len(body) == 0 {
			t.Fatalf("FindLogo = %d bytes, %v, want a logo", len(body), err)
		}
	}
	if n, most := rows.logos.Load(), int64(w.now().Sub(began)/cache.For)+1; n > most {
		t.Errorf("500 requests of a logo within %v read it %d times, want %d at most", w.now().Sub(began), n, most)
	}

	_, err = w.fabric.Projects.Update(t.Context(), w.project.ID,
		fabric.ProjectChange{Logos: brand.Logos{brand.Light: {}}})
	must(t, err)
	w.pass(time.Second)
	if _, err := node.Projects.FindLogo(t.Context(), p.Logo); !errors.Is(err, problem.NotFound) {
		t.Errorf("a logo removed a second ago: %v, want not found", err)
	}
}
