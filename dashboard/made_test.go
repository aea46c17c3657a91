package dashboard_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// Removing an operator shows what it has made, which stays unless it is ended with it; and
// nobody ends by it what another has made.
func TestMadeByOperator(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	_, ann := w.operator("ann@example.com", ofAll)
	bob, b := w.operator("bob@example.com", operator.Membership{ProjectID: w.one.ID, Role: operator.Admin})
	base := "/dashboard/projects/" + w.one.ID
	key := func(b browser, name string) (id string, good func() bool) {
		t.Helper()
		secret := b.post(base+"/keys/new", base+"/keys", url.Values{"name": {name}, "scope": {"Voice"}}).find(t, `<code>(PT[0-9a-f]{64})<`)
		k, err := w.fabric.Authenticate(ctx, w.one.ID, secret)
		must(t, err)
		return k.ID, func() bool {
			_, err := w.fabric.Authenticate(ctx, w.one.ID, secret)
			if err != nil && !errors.Is(err, problem.Unauthenticated) {
				t.Fatal(err)
			}
			return err == nil
		}
	}
	token := func(b browser) (good func() bool) {
		t.Helper()
		at := base + "/tokens/make/subscriber"
		raw := b.post(at, at, url.Values{"reference": {"sub-1"}}).find(t, `id="made"><span class="copy"><code>([^<]+)<`)
		if a := b.post(base+"/tokens", base+"/tokens/inspect", url.Values{"token": {raw}}); !strings.Contains(a.body, "Made by hand by") {
			t.Errorf("what a token is: %s", a.body)
		}
		return func() bool {
			_, err := w.fabric.Open(ctx, raw, fabric.SAT)
			if err != nil && !errors.Is(err, problem.Unauthenticated) {
				t.Fatal(err)
			}
			return err == nil
		}
	}
	kept, keptGood := key(b, "kept")
	ended, endedGood := key(b, "ended")
	foreign, foreignGood := key(ann, "of ann")
	bobs, anns := token(b), token(ann)
	page := "/dashboard/operators/" + bob.ID
	shown := ann.get(page)
	for _, want := range []string{`value="api_key ` + kept, `value="api_key ` + ended, `value="tokens"`} {
		if !strings.Contains(shown.body, want) {
			t.Errorf("the page of the operator lacks %s", want)
		}
	}
	if strings.Contains(shown.body, foreign) {
		t.Error("the page shows what another has made")
	}
	choose := url.Values{"end": {"api_key " + ended, "api_key " + foreign}}
	ann.post(page, page+"/revoke", choose).leadsTo(t, page+"?done=madeended")
	if endedGood() || !keptGood() || !foreignGood() || !bobs() || !anns() {
		t.Errorf("ended %v, kept %v, of another %v, tokens %v and %v", endedGood(), keptGood(), foreignGood(), bobs(), anns())
	}
	if a := ann.post(page, page+"/delete", url.Values{"confirm": {"ann@example.com"}, "end": {"tokens"}}); a.StatusCode != http.StatusUnprocessableEntity || !bobs() {
		t.Errorf("without its e-mail: %s", a.Status)
	}
	ann.post(page, page+"/delete", url.Values{"confirm": {"bob@example.com"}, "end": {"tokens"}}).leadsTo(t, "/dashboard/operators?done=deleted")
	if bobs() || !anns() || !keptGood() {
		t.Errorf("after it went: its token %v, another's %v, its key %v", bobs(), anns(), keptGood())
	}
}
