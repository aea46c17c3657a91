package laml_test

import "testing"

func TestTranscriptions(t *testing.T) {
	s := newServer(t)
	sid := s.upload(t, speech, "")
	for _, end := range []string{"", ".json"} {
		path := s.path("/Recordings/" + sid + "/Transcriptions")
		a := s.do(t, "GET", path+end, s.basic)
		wantStatus(t, "transcriptions"+end, a, 200)
		uri := path + "?Page=0&PageSize=50"
		want := `{"uri":"` + uri + `","first_page_uri":"` + uri + `",` +
			`"next_page_uri":null,"previous_page_uri":null,"page":0,"page_size":50,"transcriptions":[]}` + "\n"
		if string(a.body) != want {
			t.Errorf("transcriptions%s = %s, want %s", end, a.body, want)
		}
	}
}
