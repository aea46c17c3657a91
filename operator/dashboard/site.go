package dashboard

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/templates"
)

// The cookies: of a session, and of the project that was looked at last, which is no
// secret.
const (
	sessionCookie = "selvage-operator"
	projectCookie = "selvage-project"
)

// A visit is one request, with what is known of who sends it.
type visit struct {
	w        http.ResponseWriter
	r        *http.Request
	route    route
	cookie   string
	mark     string // of the browser, where it has no session
	session  operator.Session
	account  operator.Operator // of the session, be it halfway
	operator operator.Operator // its ID is "" before somebody is signed in
	project  fabric.Project    // of a path that names one
	form     url.Values        // of a POST
	file     *multipart.Part   // of an upload, yet to be read; nil where there is none
	now      time.Time
	told     string // what the page says was just done, in place of what its address picks
}

// A site is what all groups of pages share: the services behind each request, the session of
// the operator, and the frame around a page.
type site struct {
	Operators     *operator.Operators
	Fabric        *fabric.Fabric
	Factors       *factor.Factors // nil if second factors are not supported
	RequireFactor []operator.Role
	PublicURL     string
	AuthURL       string
	Log           *slog.Logger
	Now           func() time.Time

	origin  string
	cookies web.Cookies
	links   []navLink
	streams streams
}

// handle serves a route to those who may have it.
func (a *site) handle(rt route) http.Handler {
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{w: w, r: r, route: rt, now: a.Now()}
		w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
		err := a.admit(v)
		if err == nil {
			err = rt.serve(v)
		}
		if err != nil {
			a.fail(v, err)
		}
	})
	refuse := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.fail(&visit{w: w, r: r, now: a.Now()}, errCrossSite)
	})
	return web.SameOrigin(a.origin, serve, refuse)
}

// The errors that a visit may end with before its handler is asked.
var (
	errCrossSite = problem.New(problem.Forbidden, "cross_site",
		"the form came from another site; nothing was changed")
	errForm = problem.New(problem.Forbidden, "form_token",
		"the form is of another session, or was open too long; nothing was changed")
	errSignIn = errors.New("nobody is signed in")
	errStale  = errors.New("the operator has to prove who it is once more")
)

// admit reads who is there, and refuses who may not have the route.
func (a *site) admit(v *visit) error {
	if err := a.readSession(v); err != nil {
		return err
	}
	if v.route.upload > 0 { // its body may be large: nothing of it is read for who may not send it
		if v.operator.ID == "" {
			return errSignIn
		}
		if err := v.operator.Check(v.route.may, v.r.PathValue("project")); err != nil {
			return err
		}
	}
	if v.r.Method == http.MethodPost {
		if err := a.readForm(v); err != nil {
			return err
		}
	}
	switch {
	case v.route.may == anyone:
		return nil
	case v.route.may == halfway && v.account.ID != "" && v.operator.ID == "":
		return nil
	case v.operator.ID == "", v.route.may == halfway:
		return errSignIn
	}
	if id := v.r.PathValue("project"); id != "" {
		// The right first, then the row: what is not the operator's is not there.
		if err := v.operator.Check(v.route.may, id); err != nil {
			return err
		}
		p, err := a.Fabric.Projects.Find(v.r.Context(), id)
		if err != nil {
			return err
		}
		v.project = p
	} else if v.route.may != signedIn {
		if err := v.operator.Check(v.route.may, ""); err != nil {
			return err
		}
	}
	if v.route.fresh && !a.Operators.IsFresh(v.session) {
		return errStale
	}
	return nil
}

// readSession reads the session of the browser, if it has one that is good.
func (a *site) readSession(v *visit) error {
	v.cookie = a.cookies.Read(v.r, sessionCookie)
	if v.cookie == "" {
		return nil
	}
	s, o, err := a.Operators.Open(v.r.Context(), v.cookie)
	switch {
	case errors.Is(err, problem.Unauthenticated):
		v.cookie = ""
		return nil
	case err != nil:
		return err
	}
	v.session, v.account = s, o
	audit.As(v.r.Context(), audit.Operator, o.ID)
	// A role that needs more than the session has shown may have come meanwhile.
	if s.Proven && (s.TwoFactors() || !a.requiresFactor(o)) {
		v.operator = o
	}
	return nil
}

// maxForm bounds a form, and maxLargeForm one that may hold a document.
const (
	maxForm      = 64 << 10
	maxLargeForm = 2 << 20
)

func (a *site) readForm(v *visit) error {
	if web.Encoded(v.r) {
		return problem.New(problem.Unsupported, "unsupported_media_type", "a compressed form is not read here")
	}
	most := int64(maxForm)
	if v.route.large {
		most = maxLargeForm
	}
	parse := v.r.ParseForm
	if v.route.upload > 0 {
		parse = func() error { return a.openUpload(v) }
	} else {
		v.r.Body = http.MaxBytesReader(v.w, v.r.Body, most)
	}
	if err := parse(); err != nil {
		return problem.New(problem.Malformed, "bad_request", "the form cannot be read")
	}
	for _, values := range v.r.PostForm {
		for _, text := range values {
			if strings.ToValidUTF8(text, "") != text || strings.ContainsRune(text, 0) {
				return problem.New(problem.Malformed, "bad_request", "a field of the form is not text")
			}
		}
	}
	v.form = v.r.PostForm
	if subtle.ConstantTimeCompare([]byte(v.form.Get("form")), []byte(a.formToken(v))) != 1 {
		if v.operator.ID == "" && v.route.may != anyone {
			return errSignIn
		}
		return errForm
	}
	return nil
}

// formToken returns the token that comes back with each form of this browser. It is made
// of the cookie, and says nothing about it.
func (a *site) formToken(v *visit) string {
	mark := v.cookie
	if mark == "" {
		if v.mark == "" {
			v.mark = a.cookies.Flow(v.w, v.r)
		}
		mark = v.mark
	}
	sum := sha256.Sum256([]byte("a form of the dashboard\n" + mark))
	return base64.RawURLEncoding.EncodeToString(sum[:18])
}

// page answers with a page of the dashboard.
func (a *site) page(v *visit, status int, title, name string, data any) error {
	return a.pageWith(v, templates.Options{Status: status}, title, name, data)
}

func (a *site) pageWith(v *visit, o templates.Options, title, name string, data any) error {
	o.Scripts = true
	p := templates.Dashboard{Page: name, Data: data,
		Frame: templates.Frame{Title: title, Theme: web.Theme(v.r), FormToken: a.formToken(v), Now: v.now}}
	if v.operator.ID != "" {
		if err := a.frame(v, &p.Frame); err != nil {
			return err
		}
	}
	return templates.Write(v.w, p, o)
}

// redirect leads to another page of ours, after a form was done.
func (v *visit) redirect(path string) error {
	web.NoStore(v.w)
	http.Redirect(v.w, v.r, path, http.StatusSeeOther)
	return nil
}

// base is the path of the pages of the visit's project.
func (v *visit) base() string { return Prefix + "/projects/" + v.project.ID }

// visitor tells where the request comes from.
func visitor(r *http.Request) operator.Visitor {
	return operator.Visitor{UserAgent: r.UserAgent(), Address: web.Address(r), Network: web.Network(r)}
}

// faults are the sentences of what is wrong with a form; ok is false for other errors.
func faults(err error) (all []string, ok bool) {
	for _, p := range problem.All(err) {
		if p.Kind != problem.Invalid && p.Kind != problem.Conflict {
			return nil, false
		}
		text := p.Message
		if text != "" {
			text = strings.ToUpper(text[:1]) + text[1:]
		}
		all = append(all, strings.TrimSuffix(text, ".")+".")
	}
	return all, len(all) > 0
}
