package dashboard

import (
	"errors"
	"slices"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/templates"
)

// maxProjects is the most projects that the switcher and the list of projects show.
const maxProjects = 200

// projectsOf returns the projects in which the operator has a role, sorted by name.
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
				continue // the project was deleted after the session was read
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

// frame fills in the frame around a page.
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
		f.Projects = append(f.Projects, templates.FrameLink{
			Title: p.Name, URL: Prefix + "/projects/" + p.ID, Current: p.ID == current.ID,
		})
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

// linksOf returns the entries of the navigation, in the order of all.
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
	grouped := false // the first link of the installation starts a new group
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

// isWithin reports whether path equals of or lies below it. If alone is set, path must equal of.
func isWithin(path, of string, alone bool) bool {
	if of == Prefix+"/projects" {
		alone = true
	}
	return path == of || !alone && strings.HasPrefix(path, of+"/")
}

// lastProject returns the project that the operator last visited, or else the first project.
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

// front serves GET /dashboard: it redirects to the home page of a project.
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
