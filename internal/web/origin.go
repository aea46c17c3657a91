package web

import (
	"net/http"
	"strings"
)

// SameOrigin calls next, unless the request is a form that a page of another origin sent. In that
// case it calls refuse. origin is the origin that browsers use for this server. Unlike the check in
// net/http, which compares only hosts, SameOrigin also compares schemes.
func SameOrigin(origin string, next, refuse http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(refuse)
	checked := protection.Handler(next)

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own := "http://" + r.Host
		if r.TLS != nil {
			own = "https://" + r.Host
		} else if origin == "https://"+r.Host {
			own = origin // the URL that browsers use, because a proxy terminates TLS
		}

		from := r.Header.Get("Origin")
		safe := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions

		switch {
		case !safe && from != "" && from != own && from != origin:
			refuse.ServeHTTP(w, r)
		case from == origin && r.Header.Get("Sec-Fetch-Site") == "" &&
			(r.TLS == nil || strings.HasPrefix(from, "https:")):
			// This is an older browser. Its Origin matches ours, even if a proxy changed the Host.
			next.ServeHTTP(w, r)
		default:
			checked.ServeHTTP(w, r)
		}
	})
}
