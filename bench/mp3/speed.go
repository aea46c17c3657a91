package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// compareSpeed prints the CPU time that each encoder needs for 600 s of recorded speech. It runs
// the encoders alternately, so that other load on the machine affects both.
func compareSpeed(dir string, repeat int) error {
	speech, err := prompts(600)
	if err != nil {
		return err
	}
	wav := filepath.Join(dir, "long.wav")
	if err := speech.writeWAV(wav); err != nil {
		return err
	}

	ours := []string{os.Args[0], "-encode", wav}
	fmt.Println("\n| 600 s of speech at 8 kHz, 32 kbit/s | user CPU s, ours | lame's | ratio, median of pairs |")
	fmt.Println("|---|--:|--:|--:|")
	for _, options := range [][]string{{}, {"-q", "5"}, {"-q", "7"}} {
		var ourTimes, lameTimes, ratios []float64
		for range repeat {
			our, err := userTime(ours)
			if err != nil {
				return err
			}
			lame, err := userTime(slices.Concat([]string{"lame", "--quiet", "-b", "32"}, options,
				[]string{wav, "-"}))
			if err != nil {
				return err
			}

			ourTimes, lameTimes = append(ourTimes, our.Seconds()), append(lameTimes, lame.Seconds())
			ratios = append(ratios, float64(our)/float64(lame))
		}
		fmt.Printf("| lame -b 32 %v | %.2f | %.2f | %.2f |\n", options,
			median(ourTimes), median(lameTimes), median(ratios))
	}
	return nil
}

// userTime runs a command, discards its output, and returns its user time.
func userTime(command []string) (time.Duration, error) {
	cmd := exec.Command(command[0], command[1:]...)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	cmd.Stdout = null
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%v: %w", command, err)
	}
	return cmd.ProcessState.UserTime(), nil
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}
