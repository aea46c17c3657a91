package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/selvage/selvage/recordings/audio"
	"github.com/selvage/selvage/recordings/mp3"
	"github.com/selvage/selvage/recordings/wav"
)

// The limits of sounds. Together, they limit the memory for sounds to about 400 MB.
const (
	maxSound         = 2 << 20 // bytes of the file
	maxDuration      = 2 * time.Minute
	maxSounds        = 64 // sounds at the same time
	maxProjectSounds = 16 // sounds of one project at the same time
)

// soundRate is the sample rate of sounds.
const soundRate = 16000

// A soundCount counts the sounds in memory, in order to limit their number in total and for each
// project.
type soundCount struct {
	mu  sync.Mutex
	all int
	of  map[string]int // by project
}

// take counts a sound of a project until release is called.
func (c *soundCount) take(projectID string) (release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.of[projectID] >= maxProjectSounds:
		return nil, fmt.Errorf("%d sounds of the project are already playing", maxProjectSounds)
	case c.all >= maxSounds:
		return nil, fmt.Errorf("%d sounds are already playing", maxSounds)
	}
	if c.of == nil {
		c.of = make(map[string]int)
	}
	c.all++
	c.of[projectID]++
	return func() { c.release(projectID) }, nil
}

func (c *soundCount) release(projectID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.of[projectID]--; c.of[projectID] == 0 {
		delete(c.of, projectID)
	}
}

// Sound implements calls.Scripts. A relative URL is resolved against the webhook's URL.
func (w *Webhook) Sound(
	ctx context.Context, projectID, address string,
) (sound []int16, release func(), err error) {
	at, err := w.url.Parse(address)
	if err != nil {
		return nil, nil, errors.New("the URL of the sound is invalid")
	}
	client := w.client
	if at.Scheme != w.url.Scheme || at.Host != w.url.Host {
		client = w.others
		if err := w.egress.Check("url", at.String()); err != nil {
			return nil, nil, fmt.Errorf("checking the URL of the sound: %w", err)
		}
	}

	release, err = w.sounds.take(projectID)
	if err != nil {
		return nil, nil, err
	}
	sound, err = w.load(ctx, client, at.String())
	if err != nil {
		release()
		return nil, nil, err
	}
	return sound, release, nil
}

// load fetches and decodes a sound.
func (w *Webhook) load(ctx context.Context, client *http.Client, address string) ([]int16, error) {
	file, err := exchange(ctx, client, http.MethodGet, address, http.Header{"Accept": {"audio/*"}}, nil, maxSound)
	if err != nil {
		return nil, fmt.Errorf("fetching the sound: %w", err)
	}
	sound, err := decode(file)
	if err != nil {
		return nil, fmt.Errorf("decoding the sound: %w", err)
	}
	return sound, nil
}

// decode returns the audio of a file, mixed to one channel. The file may be hostile, so decode
// returns a panic as an error.
func decode(file []byte) (sound []int16, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error: %v", p)
		}
	}()
	r := bytes.NewReader(file)
	f, err := audio.Parse(r, r.Size())
	if err != nil {
		return nil, err
	}
	if f.SampleRate < 8000 || f.SampleRate > 192000 {
		return nil, fmt.Errorf("its sample rate of %d Hz is not supported", f.SampleRate)
	}

	opened, err := audio.Open(r, f, nil)
	if err != nil {
		return nil, err
	}
	if opened.Frames() > int64(maxDuration/time.Second)*int64(opened.Rate()) {
		return nil, fmt.Errorf("it is longer than %s", maxDuration)
	}

	s := wav.Mix(opened)
	if s.Rate() != soundRate {
		s = mp3.Resample(s, soundRate)
	}

	sound = make([]int16, s.Frames())
	if _, err := s.ReadFrames(sound, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return sound, nil
}
