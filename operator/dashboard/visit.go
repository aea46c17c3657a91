package dashboard

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
)

const (
	sessionCookie = "selvage-operator"
	projectCookie = "selvage-project" // the project that was visited last, which is not secret
)

// A visit is one request, with the facts that are known about its sender.
type visit struct {
	w        http.ResponseWriter
	r        *http.Request
	route    route
	cookie   string // the session cookie
	mark     string // identifies a browser without a session
	page     string // identifies the page that is sent in response; see formToken
	preview  bool   // whether the handler of a form only showed a preview
	session  operator.Session
	account  operator.Operator // the session's operator, even before the second factor is presented
	operator operator.Operator // the operator of a complete session; otherwise its ID is ""
	project  fabric.Project    // the project in the path, if any
	now      time.Time
	notice   string // describes the change that was just made; replaces the notice that the URL selects
	submission
}

// These errors end a visit before its handler runs.
var (
	errCrossSite = problem.New(problem.Forbidden, "cross_site",
		"the form was sent from another site; nothing was changed")
	errForm = problem.New(problem.Forbidden, "form_token",
		"the form belongs to another session, or was open too long; nothing was changed")
	errSignIn = errors.New("no operator is signed in")
	errStale  = errors.New("the operator must confirm their identity again")
)

// admit reads the session and the form of a visit, and checks that the operator may use the route.
func (a *site) admit(v *visit) error {
	if err := a.readSession(v); err != nil {
		return err
	}
	if v.route.upload > 0 { // check before reading a possibly large body
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

	if err := a.authorize(v); err != nil {
		return err
	}
	if v.route.fresh && !a.Operators.IsFresh(v.session) {
		return errStale
	}
	return nil
}

// authorize checks the permission that a route requires, and then loads the project in the path.
// Because of this order, a project that the operator may not see looks the same as a missing one.
func (a *site) authorize(v *visit) (err error) {
	id := v.r.PathValue("project")
	if id == "" && v.route.may == signedIn {
		return nil
	}
	if err := v.operator.Check(v.route.may, id); err != nil || id == "" {
		return err
	}
	v.project, err = a.Fabric.Projects.Find(v.r.Context(), id)
	return err
}

// readSession reads the browser's session, if it has a valid one.
func (a *site) readSession(v *visit) error {
	v.cookie = a.cookies.Read(v.r, sessionCookie)
	if v.cookie == "" {
		return nil
	}
	read := a.Operators.Open
	if isStream(v.route) {
		read = a.Operators.Peek // a stream does not extend the session
	}
	s, o, err := read(v.r.Context(), v.cookie)
	switch {
	case errors.Is(err, problem.Unauthenticated):
		v.cookie = ""
		return nil
	case err != nil:
		return err
	}

	v.session = s
	v.account = o
	audit.As(v.r.Context(), audit.Operator, o.ID)
	if a.isComplete(s, o) {
		v.operator = o
	}
	return nil
}

// isComplete reports whether the operator has presented all required factors in a session. Since
// signing in, the operator may have received a role that requires a second factor.
func (a *site) isComplete(s operator.Session, o operator.Operator) bool {
	return s.Proven && (s.TwoFactors() || !a.requiresFactor(o))
}

// maxForm and maxLargeForm are the maximum sizes of a form in bytes, without and with a document.
const (
	maxForm      = 64 << 10
	maxLargeForm = 2 << 20
)

// readForm reads the form of a POST and verifies its token. If the form has a file, it reads only
// the fields before the file.
func (a *site) readForm(v *visit) error {
	if web.Encoded(v.r) {
		return problem.New(problem.Unsupported, "unsupported_media_type", "compressed forms are not supported")
	}
	if err := a.parseForm(v); err != nil {
		return problem.New(problem.Malformed, "bad_request", "the form is invalid")
	}
	if err := checkText(v.r.PostForm); err != nil {
		return err
	}

	v.form = v.r.PostForm
	mark, _, _ := strings.Cut(v.form.Get("form"), ".")
	if subtle.ConstantTimeCompare([]byte(mark), []byte(a.formMark(v))) == 1 {
		return nil
	}
	if v.operator.ID == "" && v.route.may != anyone {
		return errSignIn // the session ended while the form was open
	}
	return errForm
}

// checkText checks that all fields are text.
func checkText(posted url.Values) error {
	for _, values := range posted {
		for _, text := range values {
			if strings.ToValidUTF8(text, "") != text || strings.ContainsRune(text, 0) {
				return problem.New(problem.Malformed, "bad_request", "a form field is not valid text")
			}
		}
	}
	return nil
}

// parseForm reads the fields of a form, up to its first file.
func (a *site) parseForm(v *visit) error {
	if v.route.upload > 0 {
		return a.openUpload(v)
	}
	limit := int64(maxForm)
	if v.route.large {
		limit = maxLargeForm
	}
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, limit)
	return v.r.ParseForm()
}

// formToken returns the token that each form on the page must send back: the browser's formMark, and
// a random value that differs for each page.
func (a *site) formToken(v *visit) string {
	if v.page == "" {
		v.page = rand.Text()
	}
	return a.formMark(v) + "." + v.page
}

// formMark returns the part of a form token that identifies the browser. It is derived from the
// cookie but does not reveal it.
func (a *site) formMark(v *visit) string {
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

// words returns the words of the visitor's language: the language that was chosen in this browser,
// or else the browser's preference.
func (v *visit) words() *words.Words {
	return words.Choose(web.Language(v.r), v.r.Header.Get("Accept-Language"))
}

// say translates a text, or a result of words.Textf or words.Sentences.
func (v *visit) say(text string) string { return v.words().Text(text) }

// size formats a number of bytes as [formatSize] does, for the visitor's language.
func (v *visit) size(n int64) string { return v.words().Number(formatSize(n)) }

// redirect redirects to another page of the dashboard after a form was handled.
func (v *visit) redirect(path string) error {
	web.NoStore(v.w)
	http.Redirect(v.w, v.r, path, http.StatusSeeOther)
	return nil
}

// base returns the path of the pages of the visit's project.
func (v *visit) base() string { return Prefix + "/projects/" + v.project.ID }

// mayIn reports whether the operator may perform an action in the visit's project.
func (v *visit) mayIn(action operator.Action) bool {
	return v.operator.Check(action, v.project.ID) == nil
}

// visitor describes the sender of a request.
func visitor(r *http.Request) operator.Visitor {
	return operator.Visitor{UserAgent: r.UserAgent(), Address: web.Address(r), Network: web.Network(r)}
}

// Caller authorizes an API request about a project. The request carries an operator's session
// cookie and no other credentials. If the operator's role allows the request, Caller returns the
// operator's id. A request that may change something must also come from one of our own pages.
func (a *API) Caller(r *http.Request, projectID string) (operatorID string, err error) {
	v := &visit{r: r, now: a.site.Now()}
	if err := a.site.readSession(v); err != nil {
		return "", err
	}
	if v.operator.ID == "" || projectID == "" {
		return "", problem.NoCredentials().Telling(
			"neither an API key nor a token was sent, and no operator is signed in")
	}

	action := operator.Read
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		action = operator.Write
		if !a.site.isSameOrigin(r) {
			return "", errCrossSite
		}
	}
	return v.operator.ID, v.operator.Check(action, projectID)
}

// isSameOrigin reports whether one of our own pages sent the request, according to the browser's
// Sec-Fetch-Site or Origin header. If a request has neither header, isSameOrigin returns false:
// every browser that can hold a session sends one of them.
func (a *site) isSameOrigin(r *http.Request) bool {
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	if site != "" && site != "same-origin" || origin != "" && origin != a.origin {
		return false
	}

	isAllowed := false
	allow := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { isAllowed = true })
	refuse := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	web.SameOrigin(a.origin, allow, refuse).ServeHTTP(nil, r)
	return isAllowed && (site != "" || origin != "")
}
