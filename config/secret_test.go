package config_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.yaml.in/yaml/v3"

	"github.com/weirtg/weir/config"
)

// requireNoSecret fails if out holds a secret, as text or in hexadecimal.
func requireNoSecret(t *testing.T, out, how string) {
	t.Helper()
	_, rest, _ := strings.Cut(token, ":")
	for _, s := range []string{hash, rest} {
		require.NotContains(t, out, s, how)
		require.NotContains(t, strings.ToLower(out), fmt.Sprintf("%x", s), how)
	}
}

func TestSecretDoesNotPrint(t *testing.T) {
	c := config.Config{AppID: 1, AppHash: config.NewSecret(hash), BotToken: config.NewSecret(token)}
	type hidden struct{ c config.Config } // fmt does not ask the methods of what is in here
	values := map[string]any{
		"config": c, "pointer": &c, "slice": []config.Config{c}, "map": map[string]*config.Config{"": &c},
		"secret": c.BotToken, "secret pointer": &c.AppHash, "secrets": []config.Secret{c.BotToken, c.AppHash},
		"unexported": hidden{c}, "unexported pointer": &hidden{c},
	}
	for name, v := range values {
		for verb := 'A'; verb <= 'z'; verb++ {
			for _, flags := range []string{"", "+", "#", "0", " ", "-80", "80.80", "# ", "+#"} {
				format := "%" + flags + string(verb)
				requireNoSecret(t, fmt.Sprintf(format, v), name+" "+format)
			}
		}
		requireNoSecret(t, fmt.Sprint(v)+fmt.Sprintln(v), name)

		data, err := json.Marshal(v)
		require.NoError(t, err, name)
		requireNoSecret(t, string(data), name+" as JSON")
		if _, unexported := v.(hidden); !unexported { // yaml refuses a struct without exported fields
			data, err = yaml.Marshal(v)
			require.NoError(t, err, name)
			requireNoSecret(t, string(data), name+" as YAML")
		}
		data, _ = xml.Marshal(v) // a map is an error
		requireNoSecret(t, string(data), name+" as XML")
		var out bytes.Buffer
		_ = gob.NewEncoder(&out).Encode(v) // a secret is an error
		requireNoSecret(t, out.String(), name+" as gob")

		for _, h := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
			slog.New(h).Info("config", "value", v)
		}
		for _, enc := range []zapcore.Encoder{
			zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()),
			zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig()),
		} {
			log := zap.New(zapcore.NewCore(enc, zapcore.AddSync(&out), zap.DebugLevel))
			log.Info("config", zap.Any("value", v), zap.Reflect("reflected", v))
			log.Sugar().Infof("%+v", v)
			log.Sugar().Infow("config", "value", v)
		}
		requireNoSecret(t, out.String(), name+" in a log")
	}
}

func TestSecretSaysWhetherItIsSet(t *testing.T) {
	set, unset := config.NewSecret(token), config.NewSecret("")
	require.Equal(t, token, set.Reveal())
	require.Equal(t, "[redacted] [redacted]", fmt.Sprintf("%s %#x", set, set))
	require.Empty(t, unset.Reveal())
	require.Equal(t, config.Secret{}, unset)
	data, err := json.Marshal([]config.Secret{set, unset})
	require.NoError(t, err)
	require.JSONEq(t, `["[redacted]", ""]`, string(data))
}

// Wherever a secret was put by mistake, the message that says so does not hold it.
func TestSecretUnderTheWrongKey(t *testing.T) {
	for _, secret := range []string{hash, token, token[10:]} {
		for _, text := range []string{
			"%s", "%s: 1", "- %s", "app_id: %s", "app_hash: x%s", "bot_token: .%s", "session_file: {%s: 1}", "dc: %s", "test_dc: %s",
			"sleep_threshold: %s", "http: %s", "http: x:%s", "log_level: %s", "rate_limits: %s", "rate_limits: {%s: 1}",
			"rate_limits: {bulk: %s}", "rate_limits: {bulk: {rate: %s, burst: '%s', '%s': 1}}", "app_hash: '%s", "bot_token: *%s",
			"bot_token: !%s x", "bot_token: !<%s> x", "%%TAG ! %s\n---\n", "%%%s\n---\n", "bot_token: &%s\n%s", "bot_token: !x!%s x",
			"chats: %s", "chats: {mode: %s}", "chats: {%s: 1}", "chats: {private: {%s: 1}, group: {limit: %s, period: %s, '%s': 1}}", "max_waiters: %s",
			"app_hash: [%s]", "? [%s]\n: 1", "&%s : 1", "app_hash: |%s", "app_hash: \"\\%s\"",
			"dc: ['%s', *%s]",
		} {
			_, err := config.Parse([]byte(strings.ReplaceAll(strings.ReplaceAll(text, "%s", secret), "%%", "%")))
			if err != nil {
				requireNoSecret(t, err.Error(), text)
				requireNoSecret(t, fmt.Sprintf("%#v", err), text)
			}
		}
		_, err := config.Load("", env(map[string]string{"APP_ID": secret, "APP_HASH": secret + "x", "BOT_TOKEN": secret + " "}), config.Flags{})
		requireNoSecret(t, err.Error(), "environment")
	}
}
