package laml_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
)

// TestHeld shows that a recording on hold cannot be deleted, and that lists filter by hold and tag.
func TestHeld(t *testing.T) {
	s := newServer(t)
	sid := s.upload(t, "canonical_44.wav", "?CallSid=a")
	s.upload(t, "canonical_44.wav", "?CallSid=b")
	reason := "case 4711"
	_, err := s.rules.Mark(t.Context(), s.project, sid, recordings.MarkInput{Hold: &reason, Tag: []string{"sales"}})
	if err != nil {
		t.Fatal(err)
	}

	wantError(t, "deleting a recording on hold", s.do(t, "DELETE", s.path("/Recordings/"+sid+".json"), s.basic),
		http.StatusConflict, 20409)
	for query, want := range map[string]int{"Tag=sales": 1, "Tag=other": 0, "Hold=true": 1, "Hold=false": 2} {
		found := read[struct {
			Recordings []struct {
				Sid   string
				Media struct {
					Tags []string
					Hold *string
				}
			}
		}](t, s.do(t, "GET", s.path("/Recordings.json?"+query), s.basic))
		if len(found.Recordings) != want {
			t.Errorf("%s: %d recordings, want %d", query, len(found.Recordings), want)
		}
		if want == 1 && (*found.Recordings[0].Media.Hold != reason || found.Recordings[0].Media.Tags[0] != "sales") {
			t.Errorf("%s: %+v", query, found.Recordings[0])
		}
	}
	wantError(t, "an invalid tag", s.do(t, "GET", s.path("/Recordings.json?Tag=A+B"), s.basic),
		http.StatusBadRequest, 10000)
}

// TestAccessLog shows that requests for media are recorded, and that requests for missing media are
// not.
func TestAccessLog(t *testing.T) {
	s := newServer(t)
	sid := s.upload(t, "canonical_44.wav", "?CallSid=a")
	media := s.path("/Recordings/" + sid)
	whole := s.do(t, "GET", media+".wav")
	s.do(t, "HEAD", media+".wav")
	s.do(t, "GET", media+".wav", header("Range", "bytes=0-9"))
	s.do(t, "GET", media+".wav", header("If-None-Match", whole.Header.Get("ETag")))
	s.do(t, "GET", media+".wav", header("Range", "bytes=99999999-"))

	found, err := s.rules.ListAccesses(t.Context(), s.project, sid, page.Query{Size: 10})
	if err != nil || len(found.Items) != 1 {
		t.Fatalf("accesses = %+v, %v, want one", found.Items, err)
	}
	a := found.Items[0]
	if want := int64(len(whole.body) + 10); a.Requests != 2 || a.Bytes != want || a.Actor != recordings.Anyone ||
		a.Format != recordings.WAV || !strings.HasPrefix(a.Address, "127.") && a.Address != "192.0.2.1" {
		t.Errorf("the access = %+v, want two requests of %d bytes by anyone", a, want)
	}
}

// TestAccessByOperator shows that an access by an operator who is signed in to the dashboard names the
// operator, also for media that need no credentials. Nobody else can make an access name an operator.
func TestAccessByOperator(t *testing.T) {
	for _, auth := range []recordings.MediaAuth{recordings.Public, recordings.Signed, recordings.Basic} {
		s := newServer(t, signing(t))
		s.setMediaAuth(t, auth)
		own, other := s.project, s.addProject(t)
		tries := map[string]struct{ project, cookie, authorization, want string }{
			"an operator":                     {own, "session=ann", "", "operator:ann"},
			"a forged session":                {own, "session=bob; operator=ann", "", recordings.Anyone},
			"an operator of other projects":   {other, "session=ann", "", recordings.Anyone},
			"a session and other credentials": {own, "session=ann", "Bearer forged", recordings.Anyone},
		}
		made := make(map[string]string)
		for name, op := range tries {
			s.project = op.project
			made[name] = s.upload(t, "canonical_44.wav", "?CallSid=a")
			media := s.path("/Recordings/" + made[name] + ".wav")
			s.project = own
			s.do(t, "GET", media, header("Cookie", op.cookie),
				header("Authorization", op.authorization))
		}

		s.Close() // waits until the accesses are noted
		for name, op := range tries {
			found, err := s.rules.ListAccesses(t.Context(), op.project, made[name], page.Query{Size: 10})
			if err != nil {
				t.Fatal(err)
			}
			refused := auth != recordings.Public && op.project == own && op.want == recordings.Anyone
			switch {
			case refused && len(found.Items) > 0:
				t.Errorf("%s with %s media: %+v, want no access", name, auth, found.Items)
			case !refused && (len(found.Items) != 1 || found.Items[0].Actor != op.want):
				t.Errorf("%s with %s media: %+v, want %s", name, auth, found.Items, op.want)
			}
		}
	}
}
