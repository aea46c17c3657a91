package templates

import (
	"cmp"
	"net/http"
	"strings"
)

// setPolicy sets the headers that tell a browser what a page may do, and which pages may frame or
// open it.
func setPolicy(h http.Header, o Options) {
	h.Set("Content-Security-Policy", contentPolicy(o))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", cmp.Or(o.Referrer, "same-origin")) // with no-referrer, browsers would post Origin: null
	if o.Framer == "" {
		h.Set("X-Frame-Options", "DENY") // this header cannot name an origin
	}
	if o.Isolated {
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
	}
}

// contentPolicy returns the Content-Security-Policy of a page. It allows only styles, fonts, images
// and forms of this server, images in data URLs, and what o adds. If o.Inert is set, it forbids
// forms.
func contentPolicy(o Options) string {
	directives := []string{"default-src 'none'"}
	if o.Scripts {
		directives = append(directives, strings.Join(append([]string{"script-src 'self'"}, o.ScriptHosts...), " "))
	}
	if o.Media {
		directives = append(directives, "media-src 'self'")
	}
	if len(o.Connect) > 0 {
		directives = append(directives, "connect-src 'self' "+strings.Join(o.Connect, " "))
	}
	if len(o.Frames) > 0 {
		directives = append(directives, "frame-src "+strings.Join(o.Frames, " "))
	}

	forms := strings.Join(append([]string{"'self'"}, o.FormAction...), " ")
	if o.Inert {
		forms = "'none'"
	}
	directives = append(directives, "style-src 'self'", "font-src 'self'", "img-src 'self' data:", "base-uri 'none'",
		"frame-ancestors "+cmp.Or(o.Framer, "'none'"), "form-action "+forms)
	return strings.Join(directives, "; ")
}
