"""What is taken for a secret in a text, and what is not."""

import pytest

from gateway.blotting import MARK, blotted

# Put together here, so that nobody who looks for keys finds this file.
LONG = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.mark.parametrize(
    "text",
    [
        "export OPENAI_API_KEY=<sk-{}>",
        "use <sk-ant-api03-{}> for it",
        'curl -H "Authorization: Bearer <{}>" https://example.org',
        "curl -H 'X-Api-Key: <{}>'",
        "Authorization: Basic <dXNlcjpwYXNzdzByZA==>",
        "git push https://ann:<{}>@example.org/app.git",
        "postgres://app:<hunter2>@db/app",
        "<ghp_{}>",
        "<github_pat_{}>",
        "<glpat-{}>",
        "<xox{}-{}>",
        "<12345678:AA{}>",
        "<AKIA0123456789ABCDEF> is it",
        "<AIza{}>",
        "<hf_{}>",
        "<eyJ{0}.eyJ{0}.{0}>",
        "mysql --password <hunter2> app",
        "mysql --password=<hunter2> app",
        'db = connect(password="<hunter22>")',
        "password: <hunter22>",
        '{{"client_secret": "<abc123def>"}}',
        "DB_PASSWORD=<hunter2>; make",
        "-----BEGIN OPENSSH PRIVATE KEY-----\n<{0}\n{0}\n>-----END OPENSSH PRIVATE KEY-----",
    ],
)
def test_a_key_is_blotted_out_and_nothing_else(text: str) -> None:
    filled = text.replace("xox{}", "xoxb").format(*[LONG] * text.count("{}") or [LONG])
    before, _, rest = filled.partition("<")
    secret, _, after = rest.partition(">")

    assert blotted(f"{before}{secret}{after}") == f"{before}{MARK}{after}"


@pytest.mark.parametrize(
    "text",
    [
        "password = getpass()",
        "def login(token: str, password: Optional[str] = None) -> None:",
        "client = OpenAI(api_key=os.environ['OPENAI_API_KEY'])",
        "mapping(address => uint256) token: uint256",
        "max_tokens=2000000",
        "password=$DB_PASSWORD1",
        "password = '${PASSWORD1}'",
        "password: see section 12",
        "the bearer of internationalization-standards",
        "class='sk-folding-cube-with-many-words'",
        "http://127.0.0.1:8080/a@b",
        "commit 6dd8a98b6dd8a98b6dd8a98b6dd8a98b6dd8a98b",
        "export OPENAI_API_KEY=sk-…",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "task-force-1234567890123456789012345",
        f"password={MARK}",
    ],
)
def test_what_is_no_key_stays(text: str) -> None:
    assert blotted(text) == text


def test_known_secrets_go_whatever_their_shape_and_a_long_text_is_soon_done() -> None:
    assert blotted("say correct horse now", ["correct horse"]) == f"say {MARK} now"
    for hostile in (
        "a" * 100_000,
        "sk-" * 30_000,
        "password=" * 10_000,
        "://" * 30_000,
        "eyJ." * 20_000,
        "-" * 100_000,
    ):
        assert blotted(hostile).startswith(hostile[:2])
