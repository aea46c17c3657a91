package dashboard

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/selvage/selvage/internal/once"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// serve runs the handler of a route. A form that creates or sends something is handled only once. A form
// that replaces the session or deletes something is handled only once if a double click sends it twice.
func (a *site) serve(v *visit) error {
	handle := func(w http.ResponseWriter, r *http.Request) (bool, error) {
		v.w, v.r = w, r
		if err := v.route.serve(v); err != nil {
			a.fail(v, err)
		}
		return !v.preview, nil
	}
	switch {
	case v.route.enters, v.route.ends:
		return a.clicks.Serve(v.w, v.r, once.Form{ID: clickID(v), Handle: handle})
	case !v.route.once:
		return v.route.serve(v)
	}
	return a.forms.Serve(v.w, v.r, once.Form{
		ID:       v.submissionID(),
		IsUpload: v.file != nil,
		Handle:   handle,
		Refuse: func(sent once.Sent) error {
			return a.page(v, http.StatusConflict, "Already sent", "sent", sentPage{sent, ownPath(refererPath(v.r))})
		},
	})
}

// submissionID identifies a form by its path, its token and its values. For an upload, it includes
// the name of the file and the length of the request instead of the file.
func (v *visit) submissionID() string {
	id := v.r.URL.Path + "\n" + v.form.Encode()
	if v.file != nil {
		id += "\n" + v.file.FileName() + "\n" + strconv.FormatInt(v.r.ContentLength, 10)
	}
	return id
}

// clickID identifies a form that this browser sends. Both requests of a double click have the same
// cookies, because the browser has dropped the first response. The id of a form that deletes something
// does not contain the cookies, because the form's token already belongs to the session, and the first
// response may have set a cookie.
func clickID(v *visit) string {
	if v.route.ends {
		return v.submissionID()
	}
	return v.submissionID() + "\n" + strings.Join(v.r.Header.Values("Cookie"), "\n")
}

// refuse responds to a request that may not use its route. This may be the second request of a double
// click, if the first one has replaced the session in which both were sent, or has deleted the project. In
// this case, refuse sends the response to the first one again. Otherwise, the browser would show the login
// page or an error instead, and recovery codes would be lost.
func (a *site) refuse(v *visit, err error) {
	replaced := v.route.enters && (errors.Is(err, errSignIn) || errors.Is(err, errForm))
	deleted := v.route.ends && errors.Is(err, problem.NotFound)
	if replaced || deleted {
		ok, failed := a.clicks.Replay(v.w, v.r, clickID(v))
		if ok {
			return
		}
		err = cmp.Or(failed, err)
	}
	a.fail(v, err)
}

// halfDone returns the faults to show if the second step of a form failed after the first one was done.
// text says what is missing. The response must be a success, so that the first step is not done again if
// the form is sent again.
func (a *site) halfDone(v *visit, text string, err error) faults {
	shown := faults{{Text: text}}
	for _, p := range problem.All(err) {
		shown = append(shown, fault{Text: sentence(p.Message)})
	}
	if len(shown) == 1 { // err has no text for the operator
		web.LogInternal(v.r, a.Log, err)
	}
	return shown
}

// A sentPage is shown for a form that was handled before, or is being handled on another node.
type sentPage struct {
	once.Sent
	Form string // path of the form's page, or ""
}
