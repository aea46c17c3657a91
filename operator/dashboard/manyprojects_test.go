package dashboard_test

import (
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/operator"
)

// manyProjects creates "Project 0" to "Project 199", and returns the last one.
func (w *world) manyProjects() (last fabric.Project) {
	w.Helper()
	for i := range 200 {
		var err error
		last, err = w.fabric.Projects.Create(w.Context(), fmt.Sprintf("Project %d", i))
		must(w, err)
	}
	return last
}

// TestManyProjectsFound shows that a search finds a project that is neither in the menu nor on the first
// page of the list. The project remains selected, and can be chosen for a role without scripts.
func TestManyProjectsFound(t *testing.T) {
	w := newWorld(t)
	last := w.manyProjects()
	bob, _ := w.operator("bob@example.com", operator.Membership{Role: operator.Viewer, ProjectID: w.one.ID})
	_, b := w.operator("ann@example.com", ofAll)
	home := "/dashboard/projects/" + last.ID

	found := b.get("/dashboard/projects?q=project+199")
	found.wantText(t, `href="`+home+`"><bdi>Project 199</bdi></a></td>`)
	found.wantNoText(t, "<td class=\"mono\">"+w.one.ID)
	b.get("/dashboard/projects?q="+last.ID).wantText(t, `href="`+home+`"><bdi>Project 199</bdi></a></td>`)
	b.get("/dashboard/projects?q=project+200").wantText(t, "No project matches the search.")
	b.get("/dashboard/search?q=199").wantText(t, `href="`+home+`"><bdi>Project 199</bdi>`)

	b.get(home)
	b.get("/dashboard").leadsTo(t, home)
	b.get(operatorList).wantText(t, `<a href="`+home+`" aria-current="true"><bdi>Project 199</bdi>`)

	invite := operatorList + "/invite"
	form := url.Values{"email": {"eve@example.com"}, "role": {"viewer"}, "other-project": {"no such project"}}
	b.post(invite, invite, form).wantRefused(t, "“\u2068no such project\u2069” is not a project.")
	form.Set("other-project", " project 199 ")
	b.post(invite, invite, form).wantText(t, "The link for")
	b.get(operatorList).wantText(t, "viewer in <bdi>Project 199</bdi>")

	page := operatorList + "/" + bob.ID
	form = url.Values{"role": {"admin"}, "project": {w.one.ID}, "other-project": {last.ID}}
	b.post(page, page+"/role", form).leadsTo(t, page+"?done=role")
	b.get(page).wantText(t, "admin in <bdi>Project 199</bdi>")
}

// TestMostProjects shows that a project is found and can be chosen by its name even if there are more
// projects than a search reads at once.
func TestMostProjects(t *testing.T) {
	w := newWorld(t)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.dir, "selvage.db")+"?_pragma=busy_timeout(60000)")
	must(t, err)
	defer db.Close()
	_, err = db.Exec(`WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < 6000)
		INSERT INTO projects (id, name, record_rate, created, updated)
		SELECT printf('00000000-0000-7000-8000-%012d', i), 'Old ' || i, 0, 0, 0 FROM numbers`)
	must(t, err)
	_, err = w.fabric.Projects.Create(t.Context(), "Ärzte")
	must(t, err)
	_, b := w.operator("ann@example.com", ofAll)

	for _, typed := range []string{"ÄRZTE", "ärzte"} {
		b.get("/dashboard/search?q="+url.QueryEscape(typed)).wantText(t, "<bdi>Ärzte</bdi>")
	}
	invite := operatorList + "/invite"
	form := url.Values{"email": {"eve@example.com"}, "role": {"viewer"}, "other-project": {"ÄrztE"}}
	b.post(invite, invite, form).wantText(t, "The link for")
	b.get(operatorList).wantText(t, "viewer in <bdi>Ärzte</bdi>")
}

// TestManyProjects shows that a role in a project is shown with the project's name, even if there are more
// than 200 projects. The form for the role has this project selected, so that saving it does not extend
// the role to all projects. The list of projects has several pages.
func TestManyProjects(t *testing.T) {
	w := newWorld(t)
	last := w.manyProjects()
	bob, _ := w.operator("bob@example.com", operator.Membership{Role: operator.Viewer, ProjectID: last.ID})
	_, b := w.operator("ann@example.com", ofAll)
	_, _, err := w.operators.Invite(t.Context(), "eve@example.com",
		operator.Membership{Role: operator.Admin, ProjectID: last.ID}, "")
	must(t, err)

	const named = "<bdi>Project 199</bdi>"
	b.get(operatorList).wantText(t, "viewer in "+named, "admin in "+named)
	b.get(operatorList+"/export").wantText(t, "viewer in Project 199")
	b.get(operatorList+"/"+bob.ID).wantText(t, "viewer in "+named,
		`<option value="`+last.ID+`" selected>Project 199</option>`)

	first := b.get("/dashboard/projects")
	first.wantNoText(t, "/dashboard/projects/"+last.ID+`"><bdi>`)
	next := first.find(t, `href="([^"]*)" rel="next"`)
	b.get(strings.ReplaceAll(next, "&amp;", "&")).wantText(t, "/dashboard/projects/"+last.ID+`"><bdi>`)
}
