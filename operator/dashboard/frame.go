package dashboard

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/templates"
)

// maxProjects bounds how many the switcher and its page show.
const maxProjects = 200

// projectsOf returns the projects in which an operator has a role, in the order of their
// names.
func (a *site) projectsOf(v *visit) ([]fabric.Project, error) {
	var all []fabric.Project
	if v.operator.Sees("") {
		p, err := a.Fabric.Projects.List(v.r.Context(), page.Query{Size: maxProjects})
		if err != nil {
			return nil, err
		}
		all = p.Items
	} else {
		for _, m := range v.operator.Roles {
			p, err := a.Fabric.Projects.Find(v.r.Context(), m.ProjectID)
			if errors.Is(err, problem.NotFound) {
				continue // deleted since the roles were read
			}
			if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(x, y fabric.Project) int {
		return strings.Compare(strings.ToLower(x.Name), strings.ToLower(y.Name))
	})
	return all, nil
}

// frame fills in what is around each page.
func (a *site) frame(v *visit, f *templates.Frame) error {
	all, err := a.projectsOf(v)
	if err != nil {
		return err
	}
	f.Operator, f.Notice = v.operator.Title(), a.notice(v, f.Title)
	current := v.project
	if current.ID == "" {
		current = a.lastProject(v, all)
	} else if a.cookies.Read(v.r, projectCookie) != current.ID {
		a.cookies.Set(v.w, v.r, projectCookie, current.ID)
	}
	f.Project = current.Name
	for _, p := range all {
		f.Projects = append(f.Projects, templates.FrameLink{Title: p.Name, URL: Prefix + "/projects/" + p.ID,
			Current: p.ID == current.ID})
	}
	f.Nav = a.nav(v, current.ID)
	return nil
}

// A navLink is an entry of the navigation. The pages of a project come first, then those of
// the installation.
type navLink struct {
	title, path string
	may         operator.Action
	inProject   bool // the path names a project
}

// linksOf returns the entries of the navigation, in the order of the routes.
func linksOf(all []route) (links []navLink) {
	for _, inProject := range []bool{true, false} {
		for _, rt := range all {
			_, path, _ := strings.Cut(rt.pattern, " ")
			if rt.nav != "" && strings.Contains(path, "{project}") == inProject {
				links = append(links, navLink{rt.nav, path, rt.may, inProject})
			}
		}
	}
	return links
}

// nav returns the navigation of an operator, with the links of the current project.
func (a *site) nav(v *visit, projectID string) (all []templates.FrameLink) {
	grouped := false // the first link of the installation is set apart
	for _, l := range a.links {
		if l.inProject && projectID == "" || l.may != signedIn && v.operator.Check(l.may, projectID) != nil {
			continue
		}

		path := strings.Replace(l.path, "{project}", projectID, 1)
		all = append(all, templates.FrameLink{
			Title: l.title, URL: path, Current: isWithin(v.r.URL.Path, path, l.title == "Home"),
			Apart: !l.inProject && !grouped && len(all) > 0,
		})
		grouped = grouped || !l.inProject
	}
	return all
}

// isWithin reports whether a path is a page, or one under it; alone, that page alone.
func isWithin(path, of string, alone bool) bool {
	if of == Prefix+"/projects" {
		alone = true
	}
	return path == of || !alone && strings.HasPrefix(path, of+"/")
}

// lastProject returns the project that was looked at last, or the first.
func (a *site) lastProject(v *visit, all []fabric.Project) fabric.Project {
	last := a.cookies.Read(v.r, projectCookie)
	for _, p := range all {
		if p.ID == last {
			return p
		}
	}
	if len(all) == 0 {
		return fabric.Project{}
	}
	return all[0]
}

// front serves GET /dashboard: the home of a project.
func (a *projectPages) front(v *visit) error {
	all, err := a.projectsOf(v)
	if err != nil {
		return err
	}
	if p := a.lastProject(v, all); p.ID != "" {
		return v.redirect(Prefix + "/projects/" + p.ID)
	}
	return v.redirect(Prefix + "/projects")
}

// An errorPage is what a page of an error shows.
type errorPage struct{ Text, RequestID string }

// fail answers with an error: a way to sign in, or a page that says what happened and
// what to do.
func (a *site) fail(v *visit, err error) {
	switch {
	case errors.Is(err, errSignIn):
		_ = v.redirect(Prefix + "/login" + nextOf(v.r)) // never fails
		return
	case errors.Is(err, errStale):
		_ = v.redirect(Prefix + "/confirm" + nextOf(v.r))
		return
	}
	status, title, text := http.StatusInternalServerError, "Something went wrong",
		"It is not your fault. Go back and try again."
	p := problem.First(err)
	if p == nil || p.Kind == problem.Unavailable {
		web.LogInternal(v.r, a.Log, err)
	}
	if p != nil {
		status, title, text = told(p)
		web.RetryAfter(v.w, p)
	}
	shown := errorPage{text, web.RequestID(v.r.Context())}
	web.LogPage(v.r, a.Log, status, title, "")
	if err := a.page(v, status, title, "error", shown); err != nil {
		web.LogInternal(v.r, a.Log, err)
		http.Error(v.w, "Something went wrong.", http.StatusInternalServerError)
	}
}

// told returns what a page says of a problem.
func told(p *problem.Error) (status int, title, text string) {
	text = strings.ToUpper(p.Message[:min(1, len(p.Message))]) + p.Message[min(1, len(p.Message)):] + "."
	switch p.Kind {
	case problem.Forbidden:
		return http.StatusForbidden, "That is not allowed", text
	case problem.NotFound:
		return http.StatusNotFound, "There is no such thing", "It is not there, or not among what you may see."
	case problem.Conflict:
		return http.StatusConflict, "That cannot be done now", text
	case problem.RateLimited:
		return http.StatusTooManyRequests, "Too many tries", text
	case problem.Unavailable:
		return http.StatusServiceUnavailable, "The server is busy", "Wait a few seconds, then reload this page."
	case problem.Malformed, problem.Unsupported, problem.TooLarge:
		return http.StatusBadRequest, "The request could not be read", text
	case problem.Unauthenticated:
		return http.StatusForbidden, "That is not allowed", text
	}
	return http.StatusUnprocessableEntity, "That cannot be done so", text
}

// nextOf says where to go on after signing in: to the page that was asked for, or on
// which the form was.
func nextOf(r *http.Request) string {
	path := r.URL.RequestURI()
	if r.Method != http.MethodGet {
		path = refererPath(r)
	}
	if path = ownPath(path); path == "" || path == Prefix {
		return ""
	}
	return "?" + nextQuery(path)
}

// mayIn reports whether the operator may do something in the visit's project.
func (v *visit) mayIn(action operator.Action) bool {
	return v.operator.Check(action, v.project.ID) == nil
}
