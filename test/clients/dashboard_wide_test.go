package clients

import (
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestDashboardFits shows that no page of the dashboard scrolls sideways on screens between a phone
// and a desktop.
func TestDashboardFits(t *testing.T) {
	harness.OneBackend(t)
	s := harness.Start(t)
	p := s.NewProject(t)
	p.NewSubscriber(t)
	p.NewClient(t, "spa", "--name", longApp)

	b := newTab(t)
	b.do(goTo(s.CLI(t, "", "operator", "setup-link")["url"].(string)))
	b.fill("setup-submit", "username", "ann@example.com", "name", "Ann", "password", "a loom of one's own")
	home := "/dashboard/projects/" + p.ID
	b.arrive(home)

	p.Command(t, "", "recording", "import", "--project", p.ID, "--call-sid", "call-of-today",
		"../../cmd/selvage/internal/demo/welcome.wav")

	for _, at := range []string{
		home, home + "/audit", "/dashboard/audit", home + "/resources", home + "/addresses",
		home + "/subscribers", home + "/tokens", home + "/keys", home + "/clients", home + "/branding",
		home + "/recordings", home + "/rules", "/dashboard/settings", "/dashboard/operators",
		"/dashboard/account", "/dashboard/projects",
	} {
		b.do(goTo(s.PublicURL + at))
		b.until("the page "+at, "document.readyState === 'complete'")
		for _, wide := range []int64{780, 1024, 1096, 1280} {
			b.look(wide, 800, "light")
			if got := eval[int](b, "document.documentElement.scrollWidth"); int64(got) > wide {
				t.Errorf("%s is %d pixels wide on a screen of %d", at, got, wide)
			}
		}
	}
}
