package server

import (
	"net/http"
	"strings"

	"github.com/selvage/selvage/operator/dashboard"
	"github.com/selvage/selvage/templates"
)

// join serves GET /join, the page on which guests with a link join a room. The link's token is in
// its fragment, so it reaches neither this handler nor a log.
func (a *App) join(w http.ResponseWriter, r *http.Request) {
	_ = templates.Write(w, templates.Join{}, templates.Options{ // the template was parsed at startup
		Scripts:  true,
		Isolated: true,
		Referrer: "no-referrer",
		View:     viewOf(r),
		Connect:  []string{"ws" + strings.TrimPrefix(a.Where.Public, "http")},
	})
}

// mountJoin mounts the page for guests, if this server carries calls.
func (a *App) mountJoin(mux *http.ServeMux) {
	if a.relay != nil && a.Calls != nil {
		mux.HandleFunc("GET "+dashboard.JoinPath, a.join)
	}
}
