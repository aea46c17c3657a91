package dashboard_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/selvage/selvage/operator"
)

// TestNavigation shows that the navigation has either the project's groups open or the group of the
// installation, and that a notice appears below the title, so that the title does not move.
func TestNavigation(t *testing.T) {
	w := newWorld(t)
	_, boss := w.operator("boss@example.com", operator.Membership{Role: operator.Owner})
	home := "/dashboard/projects/" + w.one.ID
	groups := regexp.MustCompile(`<details class="nav-group"( open)?><summary>(.*?)</summary>`)

	for path, isInstallation := range map[string]bool{
		home:                         false,
		home + "/subscribers":        false,
		"/dashboard/account":         false,
		"/dashboard/projects":        true,
		"/dashboard/settings/doctor": true,
	} {
		found := groups.FindAllStringSubmatch(boss.get(path).body, -1)
		if len(found) < 10 {
			t.Errorf("%s has the groups %q, want at least 10", path, found)
		}
		for _, group := range found {
			isOpen, title := group[1] != "", group[2]
			want := (title == "Installation") == isInstallation
			if isOpen != want {
				t.Errorf("%s has the group %s open: %t, want %t", path, title, isOpen, want)
			}
		}
	}

	page := boss.get(home + "/settings?done=changed").body
	title, notice := strings.Index(page, "<h1"), strings.Index(page, `<p class="notice"`)
	if title < 0 || notice < title {
		t.Errorf("the notice is at %d, the title at %d, want the notice below the title", notice, title)
	}
}
