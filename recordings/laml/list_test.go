package laml_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// A list is the document of a page as clients read it.
type list struct {
	URI          string  `json:"uri"`
	FirstPageURI string  `json:"first_page_uri"`
	NextPageURI  *string `json:"next_page_uri"`
	PrevPageURI  *string `json:"previous_page_uri"`
	Page         int     `json:"page"`
	PageSize     int     `json:"page_size"`
	Recordings   []struct {
		Sid string `json:"sid"`
	} `json:"recordings"`
}

func (l list) sids() []string {
	sids := []string{}
	for _, r := range l.Recordings {
		sids = append(sids, r.Sid)
	}
	return sids
}

func TestListDocument(t *testing.T) {
	s := newServer(t)
	for _, path := range []string{"/Recordings", "/Recordings.json", "/Calls/c/Recordings",
		"/Conferences/c/Recordings.json"} {
		got := read[map[string]json.RawMessage](t, s.do(t, "GET", s.path(path), s.basic))
		want := []string{"first_page_uri", "next_page_uri", "page", "page_size", "previous_page_uri",
			"recordings", "uri"}
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
			t.Errorf("the members of %s are %q, want %q", path, names, want)
		}
		if string(got["recordings"]) != "[]" || string(got["next_page_uri"]) != "null" ||
			string(got["page_size"]) != "50" {
			t.Errorf("an empty %s = %s, want no recordings and the page size 50", path, got)
		}

		root := s.path(strings.TrimSuffix(path, ".json"))
		if uri := string(got["uri"]); uri != `"`+root+`?Page=0&PageSize=50"` {
			t.Errorf("the uri of %s = %s, want %s with Page=0&PageSize=50", path, uri, root)
		}
	}
}

func TestListPages(t *testing.T) {
	s := newServer(t)
	var want []string
	for range 7 {
		want = append(want, s.upload(t, "one_sample.wav", "CallSid="+url.QueryEscape("a b/c")))
		s.upload(t, "one_sample.wav", "")
	}

	slices.Reverse(want)
	var got, pages []string
	for uri := s.path("/Calls/a%20b%2Fc/Recordings.json?PageSize=3&DateCreated%3E=2026-11-20"); ; {
		p := read[list](t, s.do(t, "GET", uri, s.basic))
		got = append(got, p.sids()...)
		if pages = append(pages, p.URI); p.NextPageURI == nil {
			break
		}
		uri = *p.NextPageURI
	}

	if !slices.Equal(got, want) {
		t.Errorf("the pages contain %q, want %q", got, want)
	}
	if len(pages) != 3 {
		t.Fatalf("%d pages, want 3", len(pages))
	}

	for i := len(pages) - 1; i >= 0; i-- {
		p := read[list](t, s.do(t, "GET", pages[i], s.basic))
		if p.Page != i || p.PageSize != 3 || p.FirstPageURI != pages[0] {
			t.Errorf("page %d has the number %d, the size %d and the first URI %s", i, p.Page, p.PageSize,
				p.FirstPageURI)
		}
		switch {
		case i == 0 && p.PrevPageURI != nil:
			t.Errorf("the first page has the previous page %s", *p.PrevPageURI)
		case i > 0 && (p.PrevPageURI == nil || *p.PrevPageURI != pages[i-1]):
			t.Errorf("the page before %d is %v, want %s", i, p.PrevPageURI, pages[i-1])
		}
	}
}

func TestListFilters(t *testing.T) {
	s := newServer(t)
	call := s.upload(t, "one_sample.wav", "CallSid=c1") // 2026-11-21T10:00:01Z
	s.clock.set(s.clock.now().Add(24 * time.Hour))
	conference := s.upload(t, "one_sample.wav", "ConferenceSid=r1") // 2026-11-22T10:00:02Z
	s.clock.set(s.clock.now().Add(24 * time.Hour))
	gone := s.upload(t, "one_sample.wav", "") // 2026-11-23T10:00:03Z
	if a := s.do(t, "DELETE", s.path("/Recordings/"+gone), s.basic); a.StatusCode != 204 {
		t.Fatalf("DELETE = %d, want 204", a.StatusCode)
	}

	tests := []struct {
		query url.Values
		want  []string
	}{
		{url.Values{}, []string{conference, call}},
		{url.Values{"IncludeSoftDeleted": {"true"}}, []string{gone, conference, call}},
		{url.Values{"IncludeSoftDeleted": {"false"}}, []string{conference, call}},
		{url.Values{"CallSid": {"c1"}}, []string{call}},
		{url.Values{"CallSid": {"r1"}}, nil},
		{url.Values{"ConferenceSid": {"r1"}}, []string{conference}},
		{url.Values{"DateCreated": {"2026-11-21"}}, []string{call}},
		{url.Values{"DateCreated": {"2026-11-21T00:00:00Z"}}, []string{call}},
		{url.Values{"DateCreated": {"2026-11-21T10:00:01Z"}}, []string{call}},
		{url.Values{"DateCreated": {"Sat, 21 Nov 2026 12:00:01 +0200"}}, []string{call}},
		{url.Values{"DateCreated": {"2026-11-21T10:00:02Z"}}, nil},
		{url.Values{"DateCreated<": {"2026-11-22"}}, []string{call}},
		{url.Values{"DateCreated<": {"Sun, 22 Nov 2026 10:00:02 +0000"}}, []string{call}},
		{url.Values{"DateCreated<": {"2026-11-22T10:00:03Z"}}, []string{conference, call}},
		{url.Values{"DateCreated>": {"2026-11-22"}}, []string{conference}},
		{url.Values{"DateCreated>": {"2026-11-22"}, "IncludeSoftDeleted": {"true"}}, []string{gone, conference}},
		{url.Values{"DateCreated>": {"2026-11-21"}, "DateCreated<": {"2026-11-22"}}, []string{call}},
		{url.Values{"DateCreated": {"2026-11-21"}, "DateCreated>": {"2026-11-22"}}, nil},
		{url.Values{"DateCreated": {""}, "PageSize": {"5000"}, "Unknown": {"x"}}, []string{conference, call}},
	}

	for _, tt := range tests {
		a := s.do(t, "GET", s.path("/Recordings.json?"+tt.query.Encode()), s.basic)
		if got := read[list](t, a).sids(); a.StatusCode != 200 || !slices.Equal(got, append([]string{}, tt.want...)) {
			t.Errorf("list with %v = %d %q, want %q", tt.query, a.StatusCode, got, tt.want)
		}
	}

	stubs := read[struct{ Recordings []map[string]any }](
		t, s.do(t, "GET", s.path("/Recordings?IncludeSoftDeleted=true"), s.basic))
	if url := stubs.Recordings[0]["media"].(map[string]any)["media_url"]; url != nil {
		t.Errorf("the stub's media_url = %v, want null", url)
	}
}

// TestListByParty shows that a list can be filtered by number, direction and duration. The number
// may have any notation in the recording and the query.
func TestListByParty(t *testing.T) {
	s := newServer(t)
	stored := s.upload(t, speech, url.Values{"From": {"+1 (415) 555-0134"}, "To": {"1000"},
		"Direction": {"inbound"}}.Encode())
	other := s.upload(t, "one_sample.wav", url.Values{"From": {"/private/alice"}, "To": {"0044 20 7946 0958"},
		"Direction": {"outbound"}}.Encode())

	for _, tt := range []struct {
		query url.Values
		want  []string
	}{
		{url.Values{"Party": {"+1 (415) 555-0134"}}, []string{stored}},
		{url.Values{"Party": {"4155550134"}}, []string{stored}},
		{url.Values{"Party": {"5550134"}}, []string{stored}},
		{url.Values{"Party": {"1000"}}, []string{stored}},
		{url.Values{"Party": {"020 7946 0958"}}, []string{other}},
		{url.Values{"Party": {"/private/alice"}}, []string{other}},
		{url.Values{"Party": {"5550135"}}, nil},
		{url.Values{"Direction": {"outbound"}}, []string{other}},
		{url.Values{"Duration>": {"1"}}, []string{stored}},
		{url.Values{"Duration<": {"1"}}, []string{other}},
		{url.Values{"Duration>": {"1"}, "Party": {"0958"}}, nil},
		{url.Values{"Duration>": {"0.5"}, "Duration<": {"60.25"}, "Party": {"1000"}, "Direction": {"inbound"}},
			[]string{stored}},
	} {
		a := s.do(t, "GET", s.path("/Recordings.json?"+tt.query.Encode()), s.basic)
		if got := read[list](t, a).sids(); a.StatusCode != 200 || !slices.Equal(got, append([]string{}, tt.want...)) {
			t.Errorf("list with %v = %d %q, want %q", tt.query, a.StatusCode, got, tt.want)
		}
	}

	for _, number := range []string{"+1 (415) 555-0134", "+14155550134", "14155550134", "0014155550134",
		"01114155550134", "+1.415.555.0134", "tel:+1-415-555-0134", "sip:+14155550134@pbx.example.com",
		"(415) 555-0134", "0415 555 0134"} {
		a := s.do(t, "GET", s.path("/Recordings.json?"+url.Values{"Party": {number}}.Encode()), s.basic)
		if got := read[list](t, a).sids(); !slices.Equal(got, []string{stored}) {
			t.Errorf("recordings of %q = %d %q, want %q", number, a.StatusCode, got, stored)
		}
	}
	for _, query := range []string{"Direction=up", "Duration%3E=-1", "Duration%3C=x", "Duration%3E=NaN",
		"Duration%3E=1e300", "Party=1&Party=2"} {
		wantError(t, query, s.do(t, "GET", s.path("/Recordings.json?"+query), s.basic), 400, 10000)
	}
}

// TestListByName shows that recordings are found by words of their addresses and of their file's
// name, no matter how the sender gave the name.
func TestListByName(t *testing.T) {
	s := newServer(t)
	send := func(path string, opts ...option) string {
		t.Helper()
		s.clock.set(s.clock.now().Add(time.Second))
		a := s.do(t, "POST", path, append(opts, s.basic)...)
		if a.StatusCode != http.StatusCreated {
			t.Fatalf("upload = %d %s, want 201", a.StatusCode, a.body)
		}
		return read[struct{ Sid string }](t, a).Sid
	}

	raw := corpusFile(t, "one_sample.wav")
	byHeader := send(s.path("/Recordings"), body("audio/wav", raw),
		header("X-Recording-Full-File-Name", "/spool/Quarterly-SalesReview.wav"))
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", "Émile sales.wav")
	if err == nil {
		_, err = part.Write(raw)
	}

	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	byForm := send(s.path("/Recordings?From=/private/lovelace"), body(w.FormDataContentType(), form.Bytes()))

	for name, want := range map[string][]string{
		"SALES": {byForm, byHeader}, "sal": {byForm, byHeader}, "sales émi": {byForm}, "wav quarter": {byHeader},
		"Quarterly-SalesReview.wav": {byHeader}, "review": {byHeader}, "ales": nil, "LOVELACE": {byForm},
		"spool": nil, "sales_": {byForm, byHeader},
	} {
		a := s.do(t, "GET", s.path("/Recordings.json?"+url.Values{"Name": {name}}.Encode()), s.basic)
		if got := read[list](t, a).sids(); !slices.Equal(got, append([]string{}, want...)) {
			t.Errorf("recordings named %q = %d %q, want %q", name, a.StatusCode, got, want)
		}
	}
}

func TestListRefusesBadQueries(t *testing.T) {
	s := newServer(t)
	for _, query := range []string{
		"PageSize=0", "PageSize=-1", "PageSize=x", "PageSize=99999999999999999999", "Page=-1", "Page=x",
		"Page=1", "Page=1&PageToken=x", "PageToken=PA", "PageToken=PA00000000-0000-0000-0000-00000000000g",
		"DateCreated=yesterday", "DateCreated%3C=2026-13-01", "DateCreated%3E=1", "IncludeSoftDeleted=yes",
		"CallSid=a&CallSid=b", "Page=%zz", "Name=%25", "Name=1+2+3+4+5+6+7+8+9",
	} {
		wantError(t, query, s.do(t, "GET", s.path("/Recordings?"+query), s.basic), 400, 10000)
	}
}
