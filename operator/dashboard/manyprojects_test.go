package dashboard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/operator"
)

// TestManyProjects shows that a role in a project is shown with the project's name, even if there are more
// than 200 projects. The form for the role has this project selected, so that saving it does not extend
// the role to all projects. The list of projects has several pages.
func TestManyProjects(t *testing.T) {
	w := newWorld(t)
	var last fabric.Project
	for i := range 200 {
		var err error
		last, err = w.fabric.Projects.Create(t.Context(), fmt.Sprintf("Project %d", i))
		must(t, err)
	}
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
