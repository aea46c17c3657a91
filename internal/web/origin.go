package web

import (
	"net/http"
	"strings"
)

// SameOrigin lets forms through that pages of origin sent, where browsers find us. The
// check of net/http compares hosts; an Origin of another scheme is another site too.
// refuse answers all others.
func SameOrigin(origin string, next, refuse http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(refuse)
	checked := protection.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own := "http://" + r.Host
		if r.TLS != nil {
			own = "https://" + r.Host
		} else if origin == "https://"+r.Host {
			own = origin // TLS ends in front of us
		}
		from := r.Header.Get("Origin")
		safe := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
		switch {
		case !safe && from != "" && from != own && from != origin:
			refuse.ServeHTTP(w, r)
		case from == origin && r.Header.Get("Sec-Fetch-Site") == "" &&
			(r.TLS == nil || strings.HasPrefix(from, "https:")):
			next.ServeHTTP(w, r) // of an older browser, whose Origin is ours whatever a proxy made of the Host
		default:
			checked.ServeHTTP(w, r)
		}
	})
}
