package dashboard

import (
	"net/http"
	"net/url"
	"path"
	"strings"
)

// A landing is a route for a browser that opens the address to which a form is sent. It redirects the
// browser to a page. A browser opens such an address when a person enters it in the address bar, or
// changes the language in the response to the form.

// projectHome is the path of a project's home page.
const projectHome = Prefix + "/projects/{project}"

// landings returns a route for each path that only forms use. The route redirects to the page of
// the object or list that the form changes.
func landings(all []route) (added []route) {
	pages := make(map[string]route) // by path
	for _, rt := range all {
		if at, ok := strings.CutPrefix(rt.pattern, "GET "); ok {
			pages[at] = rt
		}
	}
	for _, rt := range all {
		at, ok := strings.CutPrefix(rt.pattern, "POST ")
		if _, isPage := pages[at]; !ok || isPage {
			continue
		}
		to := landingOf(at, pages)
		added = append(added, route{pattern: "GET " + at, may: pages[to].may,
			serve: func(v *visit) error { return v.redirect(fillPath(v.r, to)) }})
	}
	return added
}

// landingOf returns the path of the page to which the form at a path belongs.
func landingOf(at string, pages map[string]route) string {
	to := pageAbove(at, pages)
	if to == projectHome {
		return pageAbove(entryOf(at), pages)
	}
	return to
}

// pageAbove returns the longest path of a page that is above the path at. Prefix counts as a page.
func pageAbove(at string, pages map[string]route) string {
	for {
		at = path.Dir(at)
		if _, ok := pages[at]; ok || at == Prefix {
			return at
		}
	}
}

// fillPath replaces the parameters in a path with those of r.
func fillPath(r *http.Request, at string) string {
	parts := strings.Split(at, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "{") {
			parts[i] = url.PathEscape(r.PathValue(strings.Trim(part, "{}")))
		}
	}
	return strings.Join(parts, "/")
}
