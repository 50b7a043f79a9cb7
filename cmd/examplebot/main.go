package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9/logging"

	"github.com/weirtg/weir/config"
)

// What the program ends with. A process that a signal ended is 128 plus its number
// to a shell; 130, that of Ctrl-C, is used for SIGTERM too.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

const description = `A Telegram bot that does not flood.

Without an account, a demonstration: it starts a Telegram data centre of its own on loopback, with the limits that Telegram publishes, and there the bot answers people while it sends 300 messages to 100 chats. It takes some 20 seconds and prints what happened.

With an account, the same bot on Telegram: it answers /start, /ping, /limits, /award NAME and /awards NAME, and repeats other messages. It runs until Ctrl-C and keeps its session, since each login is itself limited by Telegram, and what floods have taught it.

The account and more come from the environment, or from a file in YAML (--config). The environment wins.

  APP_ID, APP_HASH   the program's, from my.telegram.org/apps
  BOT_TOKEN          the bot's, from @BotFather
  SESSION_FILE       where the session is kept
                     (examplebot.session.json)
  STORE              where floods, learned rates and awards are kept: a file
                     (examplebot.db), redis://HOST:PORT/0, or memory

Examples:

  examplebot
  examplebot -json | jq .ratio
  examplebot --config bot.yaml --http 127.0.0.1:9090
  examplebot classify messages.sendMessage upload.getFile

Ends with 0 if all went well (for the bot on Telegram, Ctrl-C is an end like that), 1 if something failed, was lost or was flooded, 2 for a mistake in arguments or configuration, and 130 for a demonstration that a signal cut short. A second signal kills. Flags may be written with one dash, too.`

// cli is what the command line may say.
type cli struct {
	Version  kong.VersionFlag `help:"Print the version and end."`
	Run      runCommand       `cmd:"" default:"withargs" help:"Run the bot, or the demonstration if there is no account (default)."`
	Classify classifyCommand  `cmd:"" help:"Tell what Weir charges functions of Telegram's API to."`
}

// process is what the program was started with, and all that a test replaces.
type process struct {
	args           []string
	getenv         func(string) (string, bool)
	stdout, stderr io.Writer
}

func main() {
	logging.Disable() // of go-redis, which writes to stderr what the bot says in its own log
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal finds no handler, and kills
	os.Exit(process{os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr}.run(ctx))
}

// run returns the exit code.
func (p process) run(ctx context.Context) int {
	var flags cli
	ended := -1 // --help and --version end the parser
	parser, err := kong.New(&flags,
		kong.Name("examplebot"), kong.Description(description),
		kong.Vars{"version": version()},
		kong.Writers(p.stdout, p.stderr),
		kong.Exit(func(code int) { ended = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.Help(help),
	)
	if err != nil {
		return p.fail(err)
	}
	command, err := parser.Parse(doubleDashes(p.args))
	if ended >= 0 {
		return ended
	}
	if err != nil {
		see := parser.Model.Node // has all of the default command, and names the others
		if bad, ok := errors.AsType[*kong.ParseError](err); ok && bad.Context.Selected() != see.DefaultCmd {
			see = cmp.Or(bad.Context.Selected(), see)
		}
		return p.fail(usageError{fmt.Errorf("%w; see %s --help", err, see.FullPath())})
	}
	command.BindTo(ctx, (*context.Context)(nil))
	return p.fail(command.Run(p))
}

// help shows the flags of the default command also where it is not named, since it need
// not be.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	if app := ctx.Model.Node; ctx.Selected() == nil {
		app.Flags = append(app.Flags, app.DefaultCmd.Flags...)
	}
	return kong.DefaultHelpPrinter(options, ctx)
}

// given is what is typed for a flag or an argument. If there is nothing, something was
// forgotten, or a variable of the shell is empty.
type given string

// Decode implements kong.MapperValue.
func (g *given) Decode(ctx *kong.DecodeContext) error {
	*g = ""
	if next := ctx.Scan.Peek(); next.IsValue() {
		*g = given(ctx.Scan.Pop().String())
	}
	if *g == "" {
		return fmt.Errorf("no value: want %s", ctx.Value.Tag.PlaceHolder)
	}
	return nil
}

// fail prints an error, if there is one, and returns the exit code for it.
func (p process) fail(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case !errors.Is(err, errReported):
		fmt.Fprintln(p.stderr, "examplebot:", err)
	}
	var usage usageError
	var faults *config.Error
	if errors.As(err, &usage) || errors.As(err, &faults) {
		return exitUsage
	}
	return exitFailed
}

// usageError is a mistake of the person who typed the command.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

var (
	errInterrupted = errors.New("interrupted")
	// errReported ends a run whose report says what went wrong.
	errReported = errors.New("see the report")
)

// doubleDashes makes --json of -json, as the programs of Go's own flag package take
// it. What stands behind -- is left alone.
func doubleDashes(args []string) []string {
	out := make([]string, 0, len(args))
	for i, a := range args {
		if a == "--" {
			return append(out, args[i:]...)
		}
		if len(a) > 2 && a[0] == '-' && !strings.HasPrefix(a, "--") {
			a = "-" + a
		}
		out = append(out, a)
	}
	return out
}

// version is what the Go tool stamped into the binary.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "examplebot, version unknown"
	}
	return fmt.Sprintf("examplebot %s, %s", info.Main.Version, info.GoVersion)
}
