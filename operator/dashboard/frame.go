package dashboard

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/templates"
)

// maxProjects is the maximum number of projects in the switcher and on a page of the list of projects.
const maxProjects = 200

// projectsOf returns the projects in which the operator has a role, sorted by name. If the operator has
// a role in the installation, it returns at most maxProjects.
func (a *site) projectsOf(v *visit) ([]fabric.Project, error) {
	found, err := a.searchProjects(v, "", page.Query{Size: maxProjects})
	return found.Items, err
}

// searchProjects returns a page of the projects in which the operator has a role. It selects projects whose
// name contains each word of text, or whose id is text. The projects of a page are sorted by name. If the
// operator has no role in the installation, all projects are on one page.
func (a *site) searchProjects(
	v *visit, text string, q page.Query,
) (found page.Page[fabric.Project], err error) {
	if v.operator.Sees("") {
		found, err = a.Fabric.Projects.Search(v.r.Context(), text, q)
	} else {
		found.Items, err = a.projectsOfRoles(v, v.operator.Roles)
		found.Items = slices.DeleteFunc(found.Items, func(p fabric.Project) bool {
			return !matches(p.Name, text) && p.ID != strings.ToLower(text)
		})
	}
	if err != nil {
		return page.Page[fabric.Project]{}, err
	}
	slices.SortFunc(found.Items, func(x, y fabric.Project) int {
		return strings.Compare(strings.ToLower(x.Name), strings.ToLower(y.Name))
	})
	return found, nil
}

// projectsOfRoles returns the projects to which the given roles apply.
func (a *site) projectsOfRoles(v *visit, roles []operator.Membership) (projects []fabric.Project, err error) {
	for _, m := range roles {
		p, err := a.Fabric.Projects.Find(v.r.Context(), m.ProjectID)
		if errors.Is(err, problem.NotFound) {
			continue // the project was deleted after the role was read
		}
		if err != nil {
			return nil, err
		}
		projects = append(projects, p)
	}
	return projects, nil
}

// addProjects appends to projects those to which the given roles apply, if they are missing. They may be
// missing if there are more than maxProjects.
func (a *site) addProjects(
	v *visit, projects []fabric.Project, roles ...operator.Membership,
) ([]fabric.Project, error) {
	for _, m := range roles {
		isNamed := func(p fabric.Project) bool { return p.ID == m.ProjectID }
		if m.ProjectID == "" || slices.ContainsFunc(projects, isNamed) {
			continue
		}
		found, err := a.projectsOfRoles(v, []operator.Membership{m})
		if err != nil {
			return nil, err
		}
		projects = append(projects, found...)
	}
	return projects, nil
}

// frame fills in the frame around a page.
func (a *site) frame(v *visit, f *templates.Frame) error {
	projects, err := a.projectsOf(v)
	if err != nil {
		return err
	}

	current, err := a.current(v, projects)
	if err != nil {
		return err
	}
	projects, err = a.addProjects(v, projects, operator.Membership{ProjectID: current.ID})
	if err != nil {
		return err
	}

	f.Operator = v.operator.Title()
	f.Notice = a.notice(v, f.Title)
	if v.project.ID != "" && a.cookies.Read(v.r, projectCookie) != current.ID {
		a.cookies.Set(v.w, v.r, projectCookie, current.ID)
	}

	f.Project = current.Name
	for _, p := range projects {
		f.Projects = append(f.Projects, templates.FrameLink{
			Title:   p.Name,
			URL:     Prefix + "/projects/" + p.ID,
			Current: p.ID == current.ID,
		})
	}
	f.MayMakeProject = v.operator.Check(operator.MakeProject, "") == nil
	f.Nav, f.Crumbs = a.nav(v, current, f.Title)
	f.Search = Prefix + "/search"
	if current.ID != "" {
		f.Search = Prefix + "/projects/" + current.ID + "/search"
	}
	return nil
}

// current returns the project of the page, or else the project that the operator visited last.
func (a *site) current(v *visit, projects []fabric.Project) (fabric.Project, error) {
	if v.project.ID != "" {
		return v.project, nil
	}
	return a.lastProject(v, projects)
}

// A navLink is an entry of the navigation.
type navLink struct {
	title, path string
	group       navGroup
	may         operator.Action
	inProject   bool // whether the path names a project
}

// linksOf returns the entries of the navigation, sorted by group.
func linksOf(served []route) (links []navLink) {
	for _, rt := range served {
		if rt.nav == "" {
			continue
		}
		_, path, _ := strings.Cut(rt.pattern, " ")
		links = append(links, navLink{
			title:     rt.nav,
			path:      path,
			group:     rt.group,
			may:       rt.may,
			inProject: strings.Contains(path, "{project}"),
		})
	}

	slices.SortStableFunc(links, func(x, y navLink) int {
		return slices.Index(navGroups, x.group) - slices.Index(navGroups, y.group)
	})
	return links
}

// linksFor returns the entries that an operator may use, with their paths in the given project.
func (a *site) linksFor(v *visit, projectID string) (links []navLink) {
	for _, l := range a.links {
		if l.inProject && projectID == "" {
			continue
		}
		if l.may != signedIn && v.operator.Check(l.may, projectID) != nil {
			continue
		}
		l.path = strings.Replace(l.path, "{project}", projectID, 1)
		links = append(links, l)
	}
	return links
}

// nav returns the navigation of an operator in a project. crumbs is the path to the current page:
// its project, and the entry that the page belongs to. title is the title of the page. Depending on
// the page, either the groups of the project are open, or the group of the installation.
func (a *site) nav(
	v *visit, p fabric.Project, title string,
) (groups []templates.FrameGroup, crumbs []templates.FrameLink) {
	entry := entryOf(v.r.URL.Path)
	ofInstallation := p.ID == ""
	for _, l := range a.linksFor(v, p.ID) {
		if len(groups) == 0 || groups[len(groups)-1].Title != string(l.group) {
			groups = append(groups, templates.FrameGroup{Title: string(l.group)})
		}
		link := templates.FrameLink{
			Title:   l.title,
			URL:     l.path,
			Current: isWithin(entry, l.path, l.title == "Home"),
		}
		last := &groups[len(groups)-1]
		last.Links = append(last.Links, link)

		if !link.Current || l.title == "Home" {
			continue
		}
		ofInstallation = !l.inProject
		crumbs = []templates.FrameLink{{Title: string(installation), URL: Prefix + "/projects"}}
		if l.inProject {
			crumbs[0] = templates.FrameLink{Title: p.Name, URL: Prefix + "/projects/" + p.ID, Named: true}
		}
		if l.path != v.r.URL.Path || l.title != title && v.r.Method == http.MethodPost {
			crumbs = append(crumbs, link)
		}
	}

	// Open only some of the groups, because all of them together are taller than most windows.
	for i, group := range groups {
		groups[i].Open = (group.Title == string(installation)) == ofInstallation
	}
	return groups, crumbs
}

// entries maps parts of a project's paths to the entry of the navigation that their pages belong to.
var entries = map[string]string{
	"kinds":               "resources",
	"rooms":               "calls",
	"registration-tokens": "clients",
	"signing-key":         "webhooks",
	"upstreams":           "clients",
}

// entryOf returns a path below the navigation entry to which the page at path belongs. For most
// pages, this is path itself.
func entryOf(path string) string {
	parts := strings.Split(path, "/") // /dashboard/projects/{project}/part
	if len(parts) > 4 && entries[parts[4]] != "" {
		return strings.Join(append(parts[:4:4], entries[parts[4]], parts[4]), "/")
	}
	return path
}

// isWithin reports whether path is base or a path below it. If alone is set, or base is the list of
// projects, only base itself counts.
func isWithin(path, base string, alone bool) bool {
	if base == Prefix+"/projects" {
		alone = true
	}
	return path == base || !alone && strings.HasPrefix(path, base+"/")
}

// lastProject returns the project that the operator visited last, or else the first of the given
// projects. The given projects may lack the last one if there are more than maxProjects.
func (a *site) lastProject(v *visit, projects []fabric.Project) (fabric.Project, error) {
	lastID := a.cookies.Read(v.r, projectCookie)
	known := projects
	if v.operator.Sees("") {
		var err error
		known, err = a.addProjects(v, projects, operator.Membership{ProjectID: lastID})
		if err != nil {
			return fabric.Project{}, err
		}
	}

	for _, p := range known {
		if p.ID == lastID {
			return p, nil
		}
	}
	if len(projects) == 0 {
		return fabric.Project{}, nil
	}
	return projects[0], nil
}

// front serves GET /dashboard. It redirects to the home page of a project.
func (a *projectPages) front(v *visit) error {
	projects, err := a.projectsOf(v)
	if err != nil {
		return err
	}
	p, err := a.lastProject(v, projects)
	if err != nil {
		return err
	}
	if p.ID != "" {
		return v.redirect(Prefix + "/projects/" + p.ID)
	}
	return v.redirect(Prefix + "/projects")
}
