"""Files: the areas, their records and signed files. The stub file beside this module documents them."""

from ._native import (
    AsyncHttpStream,
    AsyncStorage,
    FileInfo,
    HttpStream,
    RepairReport,
    Storage,
    decrypt_file,
    encrypt_file,
    sign_file,
    verify_file,
)
