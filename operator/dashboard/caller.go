package dashboard

import (
	"net/http"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/operator"
)

// Caller returns the error of a request to an API about a project that is sent by the
// browser of an operator, by its session alone: nil where its role allows it. What
// changes something must come from a page of ours, as the browser says.
func (a *API) Caller(r *http.Request, projectID string) error {
	v := &visit{r: r, now: a.site.Now()}
	if err := a.site.readSession(v); err != nil {
		return err
	}
	if v.operator.ID == "" || projectID == "" {
		return problem.NoCredentials()
	}
	action := operator.Read
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		action = operator.Write
		if !a.site.isSameOrigin(r) {
			return errCrossSite
		}
	}
	return v.operator.Check(action, projectID)
}

// isSameOrigin reports whether a browser says that a page of ours sends a request. One that
// says nothing is not believed: every browser that has such sessions tells one of both.
func (a *site) isSameOrigin(r *http.Request) bool {
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	if site != "" && site != "same-origin" || origin != "" && origin != a.origin {
		return false
	}
	allowed := false
	web.SameOrigin(a.origin, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { allowed = true }),
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).
		ServeHTTP(nil, r)
	return allowed && (site != "" || origin != "")
}
