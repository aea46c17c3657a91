package laml_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
)

// TestHeld shows that a recording on hold cannot be deleted, and that lists filter by hold and tag.
func TestHeld(t *testing.T) {
	s := newServer(t)
	sid := s.upload(t, "canonical_44.wav", "?CallSid=a")
	other := s.upload(t, "canonical_44.wav", "?CallSid=b")
	reason := "case 4711"
	_, err := s.rules.Mark(t.Context(), s.project, sid, recordings.MarkInput{Hold: &reason, Tag: []string{"sales"}})
	if err != nil {
		t.Fatal(err)
	}

	deleted := s.do(t, "DELETE", s.path("/Recordings/"+sid+".json"), s.basic)
	wantError(t, "deleting a recording on hold", deleted, 409, 20409)

	wantList(t, s, url.Values{"Tag": {"sales"}}, []string{sid})
	wantList(t, s, url.Values{"Tag": {"other"}}, nil)
	wantList(t, s, url.Values{"Hold": {"true"}}, []string{sid})
	wantList(t, s, url.Values{"Hold": {"false"}}, []string{other, sid})
	invalid := s.do(t, "GET", s.path("/Recordings.json?Tag=A+B"), s.basic)
	wantError(t, "an invalid tag", invalid, 400, 10000)

	type document struct {
		Media struct {
			Tags []string
			Hold *string
		}
	}
	held := s.do(t, "GET", s.path("/Recordings.json?Hold=true"), s.basic)
	media := read[struct{ Recordings []document }](t, held).Recordings[0].Media
	wantText(t, "media.hold", media.Hold, reason)
	if !slices.Equal(media.Tags, []string{"sales"}) {
		t.Errorf("media.tags = %q, want only sales", media.Tags)
	}
}

// TestAccessLog shows that requests that get media are recorded, and that requests without media in
// the response are not.
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
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Items) != 1 {
		t.Fatalf("accesses = %+v, want one", found.Items)
	}
	access := found.Items[0]
	if want := int64(len(whole.body) + 10); access.Requests != 2 || access.Bytes != want {
		t.Errorf("%d requests of %d bytes, want 2 of %d", access.Requests, access.Bytes, want)
	}
	if access.Actor != recordings.Anyone || access.Format != recordings.WAV {
		t.Errorf("an access to %s by %s, want to %s by %s",
			access.Format, access.Actor, recordings.WAV, recordings.Anyone)
	}
	if !strings.HasPrefix(access.Address, "127.") && access.Address != "192.0.2.1" {
		t.Errorf("an access from %s, want from 127.0.0.0/8 or 192.0.2.1", access.Address)
	}
}

// TestAccessByOperator shows that an access by an operator who is signed in to the dashboard names the
// operator, even for media that needs no credentials. Nobody else can make an access name an operator.
func TestAccessByOperator(t *testing.T) {
	for _, auth := range []recordings.MediaAuth{recordings.Public, recordings.Signed, recordings.Basic} {
		s := newServer(t, signing(t))
		s.setMediaAuth(t, auth)
		own, other := s.project, s.addProject(t)
		var forged []string // accesses with forged credentials
		if auth == recordings.Public {
			forged = []string{recordings.Anyone}
		}
		tests := []struct {
			name, project, cookie, authorization string
			want                                 []string // who accessed the media
		}{
			{"an operator", own, "session=ann", "", []string{"operator:ann"}},
			{"a forged session", own, "session=bob; operator=ann", "", forged},
			{"an operator of other projects", other, "session=ann", "", []string{recordings.Anyone}},
			{"a session and other credentials", own, "session=ann", "Bearer forged", forged},
		}
		var sids []string
		for _, tt := range tests {
			s.project = tt.project
			sid := s.upload(t, "canonical_44.wav", "?CallSid=a")
			sids = append(sids, sid)
			media := s.path("/Recordings/" + sid + ".wav")
			s.project = own
			s.do(t, "GET", media, header("Cookie", tt.cookie), header("Authorization", tt.authorization))
		}

		s.Close() // waits until the accesses are noted
		for i, tt := range tests {
			found, err := s.rules.ListAccesses(t.Context(), tt.project, sids[i], page.Query{Size: 10})
			if err != nil {
				t.Fatal(err)
			}
			var actors []string
			for _, access := range found.Items {
				actors = append(actors, access.Actor)
			}
			if !slices.Equal(actors, tt.want) {
				t.Errorf("%s with %s media: accesses by %q, want %q", tt.name, auth, actors, tt.want)
			}
		}
	}
}
