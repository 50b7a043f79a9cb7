package weir

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/internal/breaker"
	"github.com/weirtg/weir/invoke"
)

// prelude is what the snippets of the README that are no whole program stand in.
const prelude = `package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gotd/td/bin"
	"github.com/gotd/td/telegram"
	gotdupdates "github.com/gotd/td/telegram/updates"
	"github.com/gotd/td/tg"

	"github.com/weirtg/weir/classify"
	"github.com/weirtg/weir/client"
	"github.com/weirtg/weir/dispatch"
	"github.com/weirtg/weir/flood"
	"github.com/weirtg/weir/invoke"
	"github.com/weirtg/weir/quota"
	"github.com/weirtg/weir/localdc"
	"github.com/weirtg/weir/metrics"
	"github.com/weirtg/weir/ratelimit"
	"github.com/weirtg/weir/store"
	"github.com/weirtg/weir/boltstore"
	"github.com/weirtg/weir/redisstore"
)

var (
	_ = errors.New
	_ = fmt.Errorf
	_ = log.Print
	_ = os.Getenv
	_ = time.Now
	_ = prometheus.MustRegister
	_ bin.Encoder
	_ telegram.Options
	_ tg.Client
	_ classify.Category
	_ flood.Threshold
	_ = invoke.New
	_ localdc.Options
	_ = metrics.New
	_ ratelimit.Change
	_ = quota.New
	_ = store.FailClosed
	_ = boltstore.Open
	_ = redisstore.Open
	_ = dispatch.New
	_ gotdupdates.Config

	file    *boltstore.Store
	updates telegram.UpdateHandler
)

func greet(ctx context.Context, user tg.InputPeerClass) error { return nil }

func snippet(ctx context.Context, c *client.Client, users []tg.InputPeerClass, peer tg.InputPeerClass) error {
%s
	return nil
}

func main() {}
`

func TestREADMECompiles(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	root, err := os.Getwd()
	require.NoError(t, err)

	// The snippets are laid over the module as packages that are not there.
	tmp := t.TempDir()
	overlay := map[string]string{}
	packages := []string{}
	for i, block := range strings.Split(string(readme), "```go\n")[1:] {
		code, _, ended := strings.Cut(block, "```")
		require.True(t, ended)
		if !strings.HasPrefix(code, "package ") {
			if strings.Count(code, "options") == 1 {
				code = strings.ReplaceAll(code, "options := ", "_ = ") // shown, not used
			}
			for _, made := range []string{"limiter", "bot"} { // shown, not used
				if strings.Contains(code, made+", err :=") && !strings.Contains(code, "return "+made) {
					code += "\t_ = " + made + "\n"
				}
			}
			code = fmt.Sprintf(prelude, code)
		}
		file := filepath.Join(tmp, fmt.Sprintf("snippet%d.go", i))
		require.NoError(t, os.WriteFile(file, []byte(code), 0o600))
		name := fmt.Sprintf("readme_snippet%d", i)
		overlay[filepath.Join(root, name, "main.go")] = file
		packages = append(packages, "./"+name)
	}
	require.NotEmpty(t, packages)
	replace, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	overlayFile := filepath.Join(tmp, "overlay.json")
	require.NoError(t, os.WriteFile(overlayFile, replace, 0o600))

	// Only compiled: to link as many programs would take longer and show no more.
	cmd := exec.Command("go", append([]string{"list", "-e", "-export", "-overlay", overlayFile, "-f", "{{with .Error}}{{.}}{{end}}"}, packages...)...)
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, string(output))
	require.Empty(t, strings.TrimSpace(string(output)))
}

// Who reads the README relies on its figures.
func TestREADMEHasTheDefaults(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	readme := strings.Join(strings.Fields(string(text)), " ")
	for category, limit := range invoke.DefaultLimits() {
		require.Contains(t, readme, fmt.Sprintf("| `%v` | %g | %d |", category, limit.Rate, limit.Burst))
	}
	private, group := invoke.DefaultChatLimits()
	require.Equal(t, time.Minute, group.Period)
	require.Equal(t, time.Minute, invoke.DefaultMaxWait)
	for _, want := range []string{
		fmt.Sprintf("a private chat takes %g message a second with a burst of %d, a group or channel %d in any minute", private.Rate, private.Burst, group.Limit),
		fmt.Sprintf("(`SleepThreshold`, %.0f s unless set)", flood.DefaultThreshold.Seconds()),
		fmt.Sprintf("at most %d times, and at most a minute in all", invoke.DefaultMaxRetries),
		fmt.Sprintf("After %d of a kind in %.0f minutes", breaker.DefaultLimit, breaker.DefaultPeriod.Minutes()),
	} {
		require.Contains(t, readme, want)
	}
}
