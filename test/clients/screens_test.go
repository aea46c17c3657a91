package clients

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// screens checks the pages that a tab shows. axe-core must find no violation in either theme, and
// each page must fit the width of a tablet and a phone. If SELVAGE_TEST_SCREENSHOTS names a
// directory, screenshots are saved there.
type screens struct {
	tab
	axe      string // script of axe-core
	dir      string
	lastLink string // the link that mail returned last
}

func newScreens(t *testing.T) *screens {
	t.Helper()
	script, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		harness.Missing(t, "axe-core (npm ci in test/clients)")
	}
	s := &screens{tab: newTab(t), axe: string(script), dir: os.Getenv("SELVAGE_TEST_SCREENSHOTS")}
	if s.dir != "" {
		if err := os.MkdirAll(s.dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// looks lists the window sizes and themes in which pages are checked. File names contain the names
// of the looks.
var looks = []struct {
	name       string
	wide, high int64
	theme      string
}{{"light", 1440, 900, "light"}, {"dark", 1440, 900, "dark"}, {"tablet", 768, 1024, "light"},
	{"phone", 390, 844, "light"}, {"phone-dark", 390, 844, "dark"}}

// stop checks the current page.
func (s *screens) stop(name string) {
	s.Helper()
	s.until("the page "+name, "true")
	if eval[bool](s.tab, "document.title.startsWith('Something went wrong')") {
		s.Errorf("%s is an error page", name)
	}

	for _, l := range looks {
		if s.dir == "" && l.name == "phone-dark" {
			continue
		}
		s.look(l.wide, l.high, l.theme)
		switch l.name {
		case "light":
			// The rule for regions matters little, and takes as long as all other rules except
			// contrast.
			s.audit(name, l.name, "{rules: {region: {enabled: false}}}")
		case "dark":
			s.audit(name, l.name, "{runOnly: ['color-contrast']}")
		case "tablet", "phone":
			if wide := eval[int](s.tab, "document.documentElement.scrollWidth"); wide > int(l.wide) {
				s.Errorf("%s is %d pixels wide on a screen of %d", name, wide, l.wide)
			}
			s.audit(name, l.name, "{runOnly: ['scrollable-region-focusable']}")
		}
		s.save(name + "." + l.name)
	}
	s.look(1440, 900, "light")
}

// audit checks the page with axe-core and reports all violations. Emails, which are opened as data
// URLs, need no main landmark.
func (s *screens) audit(name, look, options string) {
	s.Helper()
	if !eval[bool](s.tab, "typeof axe === 'object'") {
		s.do(chromedp.Evaluate[chromedp.Void](s.axe + ";void 0"))
	}
	found := eval[[]string](s.tab, `axe.run(document, `+
		options+`).then((r) => r.violations.filter((v) => v.id !== "landmark-one-main" || location.protocol !== "data:")
		.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.html.slice(0, 200) + " " +
			n.any.map((a) => a.message).join("; "))))`)
	for _, fault := range found {
		s.Errorf("%s (%s): %s", name, look, fault)
	}
}

// prefer makes the browser request pages in a language.
func (s *screens) prefer(language string) {
	s.Helper()
	_, err := chromedp.Call(s.ctx, network.SetExtraHTTPHeaders,
		network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": language}})
	if err != nil {
		s.Fatal(err)
	}
}

// translated opens an address, and checks what a translation can change: the language, the labels,
// and the width of the page on a phone.
func (s *screens) translated(name, url, language string) {
	s.Helper()
	s.do(goTo(url))
	s.until("the page "+name+" in another language", "document.documentElement.lang === "+quoted(language))
	s.audit(name, language, "{rules: {region: {enabled: false}, 'color-contrast': {enabled: false}}}")
	for _, l := range looks {
		if s.dir == "" && l.name != "phone" {
			continue
		}
		s.look(l.wide, l.high, l.theme)
		if wide := eval[int](s.tab, "document.documentElement.scrollWidth"); wide > int(l.wide) {
			s.Errorf("%s (%s) is %d pixels wide on a screen of %d", name, language, wide, l.wide)
		}
		s.save(name + "." + language + "-" + l.name)
	}
}

// save saves a screenshot if s.dir is set.
func (s *screens) save(name string) {
	s.Helper()
	if s.dir == "" {
		return
	}
	raw, err := chromedp.Run(s.ctx, chromedp.FullScreenshot(80))
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, name+".jpg"), raw, 0o644)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// open opens an address and checks the page.
func (s *screens) open(name, url string) {
	s.Helper()
	s.do(goTo(url))
	s.stop(name)
}

// next clicks a button, waits for the element with this id, and checks the page.
func (s *screens) next(name, button, id string) {
	s.Helper()
	s.click(button)
	s.until(id, "document.getElementById("+quoted(id)+")")
	s.stop(name)
}

// index writes a page with all screenshots to s.dir.
func (s *screens) index() {
	if s.dir == "" {
		return
	}
	all, err := filepath.Glob(filepath.Join(s.dir, "*.light.jpg"))
	if err != nil {
		s.Fatal(err)
	}

	slices.Sort(all)
	var b strings.Builder
	b.WriteString("<!doctype html><html lang=en><meta charset=utf-8><title>Screenshots</title><style>" +
		"body{font:15px system-ui;margin:24px;background:#888}" +
		"img{vertical-align:top;margin:0 12px 24px 0;max-height:640px}" +
		"h2{margin:24px 0 8px}</style>\n")

	for _, path := range all {
		name := strings.TrimSuffix(filepath.Base(path), ".light.jpg")
		fmt.Fprintf(&b, "<h2 id=%q>%s</h2>", name, html.EscapeString(name))
		for _, l := range looks {
			fmt.Fprintf(&b, `<a href="%[1]s.%[2]s.jpg"><img loading=lazy alt="%[1]s, %[2]s" src="%[1]s.%[2]s.jpg"></a>`,
				name, l.name)
		}
		b.WriteString("\n")
	}

	if err := os.WriteFile(filepath.Join(s.dir, "index.html"), []byte(b.String()), 0o644); err != nil {
		s.Fatal(err)
	}
}
